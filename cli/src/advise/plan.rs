//! The advice as a whole.

use super::gather::Gathered;
use super::items::{Item, items};
use super::knapsack::{Choice, Thing, choose, random};
use super::tiers::Tiers;
use super::traffic::Traffic;
use crate::options::{AdviseOptions, Place};

/// How often chance is asked.
const ROUNDS: u32 = 16;

/// What goes where, and what that brings.
pub struct Plan {
    /// Everything that can be placed.
    pub items: Vec<Item>,
    /// What goes into the fast memory.
    pub choice: Choice,
    /// What all accesses are worth.
    pub all: f64,
    /// Worth of what chance would place, on average.
    pub random: f64,
    /// Worth that no placement exceeds.
    pub oracle: f64,
    /// Accesses to what is in fast memory.
    pub fast: Traffic,
    /// Two memories, if they are to be simulated.
    pub tiers: Option<Tiers>,
    /// What the numbers do not say.
    pub notes: Vec<String>,
}

impl Plan {
    /// Decides.
    pub fn new(gathered: &mut Gathered, options: &AdviseOptions) -> Self {
        let items = items(gathered, options.by, options.write_cost);
        let things: Vec<Thing> = items.iter().map(|item| item.thing.clone()).collect();
        let slices = gathered.axis.slices;
        let choice = choose(&things, options.fast_bytes, slices);
        let mut fast = Traffic::default();
        choice.chosen.iter().for_each(|&index| fast += items[index].traffic);
        let random = random(&things, options.fast_bytes, slices, ROUNDS);
        let capacity = options.fast_bytes as f64 * gathered.elapsed as f64;
        let oracle = std::mem::take(&mut gathered.oracle).worth(capacity);
        let all = gathered.all.worth(options.write_cost);
        // What the report does not list one by one the oracle knows by its average alone.
        let oracle = oracle.max(choice.worth).min(all.max(choice.worth));
        let notes = notes(gathered, options.by);
        Self { items, choice, all, random, oracle, fast, tiers: Tiers::new(options), notes }
    }

    /// A worth as a share of all.
    pub fn share(&self, worth: f64) -> f64 {
        if self.all > 0.0 { worth / self.all } else { 0.0 }
    }
}

fn notes(gathered: &Gathered, by: Place) -> Vec<String> {
    let mut notes = Vec::new();
    let report = &gathered.report;
    if report.objects_omitted > 0 {
        let omitted = report.objects_omitted;
        notes.push(match by {
            Place::Site => format!(
                "the report does not list {omitted} objects: sites with such are taken to need their peak all the time"
            ),
            _ => format!("the report does not list {omitted} objects, which stay in slow memory"),
        });
    }
    if report.config.access == "w" {
        notes.push("reads were not watched".into());
    }
    if !report.config.watch.is_empty() {
        notes.push(format!(
            "only some objects were watched ({}): the others need room too",
            report.config.watch
        ));
    }
    notes
}
