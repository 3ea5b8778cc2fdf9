//! One report as the page carries it.

use super::choice;
use super::classes::{ClassRow, classes};
use super::curve::{Curve, curves};
use super::flame::{Flame, Tree};
use super::maps::{HeatMap, heat_map};
use super::names::{Name, Names, Stack, Used, text};
use super::notes::{self, Notes, notes};
use super::objects::Objects;
use super::rows::{ObjectRows, SiteRows};
use crate::symbols::Stacks;
use serde::Serialize;
use std::collections::HashSet;
use std::path::PathBuf;
use thermalloc_format::{Config, Heat, Report, Totals};

/// How much of a report a page carries.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Sites, about.
    pub sites: usize,
    /// Objects, about.
    pub objects: usize,
    /// Nodes of the flame graph.
    pub nodes: usize,
}

impl Room {
    /// As much as anybody looks at.
    pub const PLENTY: Self = Self { sites: 2000, objects: 2000, nodes: 4000 };

    /// A quarter less; `None`: there would be nothing left.
    pub fn less(self) -> Option<Self> {
        let part = |number: usize| number * 3 / 4;
        let less = Self { sites: part(self.sites), objects: part(self.objects), nodes: part(self.nodes) };
        (self.sites > 10).then_some(less)
    }
}

/// Everything about one process that the page shows.
#[derive(Serialize)]
pub struct Run<'a> {
    /// Path of the report.
    pub source: String,
    /// Process id.
    pub pid: u32,
    /// Start, in ms since 1970.
    pub start_unix_ms: u64,
    /// Length of the run in ns.
    pub elapsed_ns: u64,
    /// Sentences.
    pub notes: Notes,
    /// What was cut, in words.
    pub cut: Vec<String>,
    /// How it was watched.
    pub config: &'a Config,
    /// Sums.
    pub totals: &'a Totals,
    /// How many sites the report has.
    pub site_count: usize,
    /// How many objects it lists.
    pub object_count: u64,
    /// Functions.
    pub names: Vec<Name>,
    /// Sites.
    pub sites: SiteRows,
    /// Classes.
    pub classes: Vec<ClassRow>,
    /// Objects.
    pub objects: ObjectRows,
    /// Heat over time.
    pub map: &'a HeatMap,
    /// Placement curves.
    pub curves: &'a [Curve],
    /// Flame graph.
    pub flame: Tree,
}

/// A report with all that does not depend on the room.
pub struct Analysis {
    source: String,
    report: Report<Heat>,
    objects: Objects,
    names: Names,
    stacks: Vec<Stack>,
    notes: Notes,
    flame: Flame,
    map: HeatMap,
    curves: Vec<Curve>,
}

impl Analysis {
    /// Resolves names, also from files in these directories, and adds up.
    pub fn new(source: String, report: Report<Heat>, objects: Objects, files: &[PathBuf]) -> Self {
        let mut names = Names::default();
        let mut stacks = Stacks::with_files(&report, files);
        let all: Vec<Stack> = report.sites.iter().map(|site| names.stack(site, &mut stacks)).collect();
        let notes = notes(&report, stacks.notes());
        let flame = Flame::new(report.sites.iter().zip(&all), u32::MAX);
        let (map, curves) = (heat_map(&report, &objects), curves(&report, &objects));
        Self { source, report, objects, names, stacks: all, notes, flame, map, curves }
    }

    /// What goes into a page with that room.
    pub fn run(&self, room: Room) -> Run<'_> {
        let report = &self.report;
        let rows = self.map.views.iter().flat_map(|view| &view.rows);
        let mut wanted: HashSet<u32> = rows.filter_map(|row| row.site).collect();
        let chosen = choice::objects(&self.objects, room.objects);
        wanted.extend(chosen.iter().take(room.objects / 4).map(|&at| self.objects.all[at].site));
        let sites = choice::sites(&report.sites, &wanted, room.sites);
        let mut used = Used::new(&self.names);
        let site_rows = SiteRows::new(&sites, report, &self.stacks, &self.objects, &mut used);
        let flame = self.flame.tree(room.nodes, &mut used);
        Run {
            source: text(&self.source),
            pid: report.program.pid,
            start_unix_ms: report.program.start_unix_ns / 1_000_000,
            elapsed_ns: report.program.elapsed_ns,
            notes: self.notes.clone(),
            cut: self.cut(sites.len(), chosen.len(), flame.cut),
            config: &report.config,
            totals: &report.totals,
            site_count: report.sites.len(),
            object_count: self.objects.all.len() as u64 + self.objects.dropped,
            sites: site_rows,
            classes: classes(report, &self.objects),
            objects: ObjectRows::new(&chosen, &self.objects),
            map: &self.map,
            curves: &self.curves,
            flame,
            names: used.into_list(),
        }
    }

    fn cut(&self, sites: usize, objects: usize, nodes: usize) -> Vec<String> {
        let listed = self.objects.all.len() as u64 + self.objects.dropped;
        let order = "the most accessed, the largest, and the largest that were never read or never written";
        let dropped = (self.objects.dropped > 0)
            .then(|| format!("{} objects were too many to look at one by one.", self.objects.dropped));
        let small =
            (nodes > 0).then(|| format!("{nodes} boxes of the flame graph are too narrow to be seen; one box stands for those below another."));
        let lines = [
            notes::cut("sites", sites, self.report.sites.len() as u64, order),
            notes::cut("listed objects", objects, listed, order),
            dropped,
            small,
        ];
        lines.into_iter().flatten().collect()
    }
}
