//! Sites, objects or pages as things to place.

use super::gather::{Gathered, Listed};
use super::knapsack::{Room, Thing};
use super::traffic::Traffic;
use crate::options::Place;
use thermalloc_format::Site;

/// What is placed.
#[derive(Clone, Debug)]
pub enum What {
    /// The site of this index.
    Site(usize),
    /// The listed object of this index.
    Object(usize),
    /// Pages from this address on, and the site that has most to do with them.
    Page(u64, u32),
}

/// Something to place.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is.
    pub what: What,
    /// Its accesses.
    pub traffic: Traffic,
    /// What it takes, and what it is worth.
    pub thing: Thing,
}

/// All of one kind.
pub fn items(gathered: &Gathered, by: Place, write_cost: f64) -> Vec<Item> {
    let item = |what, traffic: Traffic, room| Item {
        what,
        traffic,
        thing: Thing { worth: traffic.worth(write_cost), room },
    };
    match by {
        Place::Site => {
            let sites = gathered.report.sites.iter().enumerate();
            sites.map(|(index, site)| item(What::Site(index), site.into(), room(site, gathered))).collect()
        }
        Place::Object => {
            let room = |object: &Listed| Room::Span(object.span, object.size);
            let objects = gathered.objects.iter().enumerate();
            objects.map(|(index, object)| item(What::Object(index), object.traffic, room(object))).collect()
        }
        Place::Page => {
            let pages = gathered.pages.sorted().into_iter();
            pages
                .map(|(at, bytes, page)| {
                    item(What::Page(at, page.site.0), page.traffic, Room::Span(page.span, bytes))
                })
                .collect()
        }
    }
}

/// What a site takes: if all its objects are listed, what lives in each slice, but never more than its peak; else its peak, all
/// the time.
fn room(site: &Site, gathered: &Gathered) -> Room {
    let peak = site.peak_live_bytes;
    match gathered.of_site.get(&site.id).filter(|_| gathered.is_complete(site)) {
        Some(listed) => Room::Slices(listed.slices.iter().map(|&bytes| bytes.min(peak)).collect()),
        None => Room::Span(gathered.axis.whole(), peak),
    }
}
