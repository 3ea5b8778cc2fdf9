//! Reads a report: twice, for what its objects are compared with stands behind them in the file.

use super::axis::{Axis, Span};
use super::oracle::Oracle;
use super::pages::Pages;
use super::traffic::Traffic;
use crate::failure::Failure;
use crate::input::{self, Histograms};
use crate::options::{AdviseOptions, Place};
use std::collections::HashMap;
use thermalloc_format::{Object, Report, Site};

/// Slices where each thing takes memory from one to another, and where it takes another amount in each.
const SPAN_SLICES: usize = 1024;
const SITE_SLICES: usize = 64;

/// What is known.
pub struct Gathered {
    /// The report without its objects.
    pub report: Report,
    /// Time.
    pub axis: Axis,
    /// What is known of the objects of each site, by its id.
    pub of_site: HashMap<u32, OfSite>,
    /// The objects, if these are placed.
    pub objects: Vec<Listed>,
    /// The pages, if these are placed.
    pub pages: Pages,
    /// All accesses to sites.
    pub all: Traffic,
    /// What no placement can exceed.
    pub oracle: Oracle,
    /// In ns, at least 1.
    pub elapsed: u64,
    write_cost: f64,
}

/// The listed objects of a site.
#[derive(Default)]
pub struct OfSite {
    /// How many.
    pub count: u64,
    /// Their sizes.
    pub bytes: u64,
    /// Their accesses.
    pub traffic: Traffic,
    /// Bytes of those that live in each slice; empty if sites are not placed.
    pub slices: Vec<u64>,
}

/// A listed object without its heat.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Where it begins.
    pub addr: u64,
    /// In bytes.
    pub size: u64,
    /// Id of its site.
    pub site: u32,
    /// When it was allocated, in ns.
    pub alloc_ns: u64,
    /// When it was freed.
    pub free_ns: Option<u64>,
    /// Its accesses.
    pub traffic: Traffic,
    /// When it lives.
    pub span: Span,
}

impl Listed {
    fn new(object: &Object, traffic: Traffic, span: Span) -> Self {
        let &Object { addr, size, site, alloc_ns, free_ns, .. } = object;
        Self { addr, size, site, alloc_ns, free_ns, traffic, span }
    }
}

impl Gathered {
    /// Reads.
    pub fn read(options: &AdviseOptions) -> Result<Self, Failure> {
        let report = input::without_objects(&options.path, Histograms::Drop)?;
        let mut gathered = Self::new(report, options);
        input::read(&options.path, Histograms::Drop, |object| gathered.add(object, options.by))?;
        gathered.add_unlisted();
        Ok(gathered)
    }

    /// Knows no objects yet.
    pub fn new(report: Report, options: &AdviseOptions) -> Self {
        let elapsed = report.program.elapsed_ns.max(1);
        let slices = if options.by == Place::Site { SITE_SLICES } else { SPAN_SLICES };
        let mut all = Traffic::default();
        report.sites.iter().for_each(|site| all += site.into());
        Self {
            report,
            axis: Axis::new(elapsed, slices),
            of_site: HashMap::new(),
            objects: Vec::new(),
            pages: Pages::default(),
            all,
            oracle: Oracle::default(),
            elapsed,
            write_cost: options.write_cost,
        }
    }

    /// Adds an object.
    pub fn add(&mut self, object: Object, by: Place) {
        let traffic = Traffic::from(&object);
        let lifetime = object.free_ns.unwrap_or(self.elapsed).saturating_sub(object.alloc_ns);
        self.oracle.add(&object, traffic.worth(self.write_cost), lifetime.min(self.elapsed));
        let span = self.axis.span(object.alloc_ns, object.free_ns);
        let site = self.of_site.entry(object.site).or_default();
        site.count += 1;
        site.bytes = site.bytes.saturating_add(object.size);
        site.traffic += traffic;
        match by {
            Place::Site => {
                site.slices.resize(self.axis.slices, 0);
                let alive = &mut site.slices[span.first..=span.last];
                alive.iter_mut().for_each(|bytes| *bytes = bytes.saturating_add(object.size));
            }
            Place::Object => self.objects.push(Listed::new(&object, traffic, span)),
            Place::Page => self.pages.add(&object, traffic, span),
        }
    }

    /// Tells the oracle of what the report does not list one by one.
    pub fn add_unlisted(&mut self) {
        let nothing = OfSite::default();
        for site in &self.report.sites {
            let listed = self.of_site.get(&site.id).unwrap_or(&nothing);
            let rest = Traffic::from(site).without(listed.traffic);
            let bytes = site.bytes.saturating_sub(listed.bytes) as f64;
            let lifetime =
                if site.lifetime_ns.count > 0 { site.lifetime_ns.mean } else { self.elapsed as f64 };
            // No more of it lives at a time than the site's peak.
            let most = site.peak_live_bytes as f64 * self.elapsed as f64;
            self.oracle.add_piece(rest.worth(self.write_cost), (bytes * lifetime).min(most));
        }
    }

    /// Whether all objects of the site are listed.
    pub fn is_complete(&self, site: &Site) -> bool {
        self.of_site.get(&site.id).is_some_and(|listed| listed.count == site.allocs)
    }
}
