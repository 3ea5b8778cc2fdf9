//! Matches the sites of two runs by what their call stacks are called in any build, and says what became of them.

use crate::measure::{add, weight};
use crate::options::{DiffOptions, Weight};
use crate::symbols::{Function, Identity, Stacks, printable};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;
use thermalloc_format::{Report, Site, Totals};

/// Above this share of a run, sites that cannot be matched are worth a word.
const WORTH_A_NOTE: f64 = 0.01;

/// What became of a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// More than before.
    Hotter,
    /// Less than before.
    Colder,
    /// Was not there before.
    Appeared,
    /// Is no longer there.
    Went,
    /// About the same.
    Unchanged,
}

impl Kind {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Hotter, Self::Colder, Self::Appeared, Self::Went, Self::Unchanged];

    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hotter => "hotter",
            Self::Colder => "colder",
            Self::Appeared => "appeared",
            Self::Went => "went",
            Self::Unchanged => "unchanged",
        }
    }
}

/// All sites of a run with the same stack.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Their sums.
    pub sum: Site,
    /// Their ids.
    pub ids: Vec<u32>,
    /// What is compared: a number, or a share of the run from 0 to 1.
    pub value: f64,
}

/// A stack in both runs.
#[derive(Clone, Debug)]
pub struct Change {
    /// What became of it.
    pub kind: Kind,
    /// Its functions.
    pub stack: Identity,
    /// The function to show; `None`: the stack is unknown.
    pub shown: Option<Function>,
    /// In the older run.
    pub old: Option<Side>,
    /// In the newer run.
    pub new: Option<Side>,
}

impl Change {
    /// What is compared, before.
    pub fn before(&self) -> f64 {
        self.old.as_ref().map_or(0.0, |side| side.value)
    }

    /// What is compared, after.
    pub fn after(&self) -> f64 {
        self.new.as_ref().map_or(0.0, |side| side.value)
    }

    /// By how much it changed.
    pub fn difference(&self) -> f64 {
        self.after() - self.before()
    }
}

/// A run as a whole.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where its report is.
    pub path: String,
    /// What ran.
    pub command: String,
    /// How long, in ns.
    pub elapsed_ns: u64,
    /// Its totals.
    pub totals: Totals,
    /// Sum over its sites of what is compared.
    pub sum: u64,
}

/// Two runs.
pub struct Comparison {
    /// The older one.
    pub old: Run,
    /// The newer one.
    pub new: Run,
    /// What is compared.
    pub by: Weight,
    /// Whether shares are compared.
    pub relative: bool,
    /// Sites whose numbers differ by at most this are unchanged.
    pub threshold_percent: u32,
    /// All stacks, largest change first.
    pub changes: Vec<Change>,
    /// What the numbers do not say.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Compares.
    pub fn new<H>(old: &Report<H>, new: &Report<H>, options: &DiffOptions) -> Self {
        let mut old_stacks = Stacks::with_files(old, &options.symbols);
        let mut new_stacks = Stacks::with_files(new, &options.symbols);
        let (old_run, new_run) = (run(&options.old, old, options.by), run(&options.new, new, options.by));
        let scale = |run: &Run| if options.relative { run.sum.max(1) as f64 } else { 1.0 };
        let mut before = sides(old, &mut old_stacks, options.by, scale(&old_run));
        let mut changes = Vec::new();
        for (stack, new_side) in sides(new, &mut new_stacks, options.by, scale(&new_run)) {
            let old = before.remove(&stack);
            let shown = new_stacks.telling(&new_side.sum).cloned();
            let kind = kind(old.as_ref(), &new_side, options.threshold);
            changes.push(Change { kind, stack, shown, old, new: Some(new_side) });
        }
        for (stack, old_side) in before {
            let shown = old_stacks.telling(&old_side.sum).cloned();
            changes.push(Change { kind: Kind::Went, stack, shown, old: Some(old_side), new: None });
        }
        changes.sort_by(by_size);
        let mut comparison = Self {
            old: old_run,
            new: new_run,
            by: options.by,
            relative: options.relative,
            threshold_percent: options.threshold,
            changes,
            notes: [old_stacks.notes(), new_stacks.notes()].concat(),
        };
        comparison.add_notes(old, new);
        comparison
    }

    /// The changes of a kind, largest first.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.kind == kind)
    }

    /// What is compared, in words.
    pub fn measure(&self) -> &'static str {
        match self.by {
            Weight::Accesses => "accesses",
            Weight::Reads => "reads",
            Weight::Writes => "writes",
            Weight::ReadBytes => "bytes read",
            Weight::WriteBytes => "bytes written",
            Weight::Allocs => "allocations",
            Weight::Bytes => "bytes allocated",
            Weight::LiveBytes => "live bytes",
            Weight::PeakBytes => "peak bytes",
        }
    }

    fn add_notes<H>(&mut self, old: &Report<H>, new: &Report<H>) {
        for (kind, report, run) in [(Kind::Went, old, &self.old), (Kind::Appeared, new, &self.new)] {
            let unnamed = self.of(kind).filter(|change| !change.stack.is_named());
            let sides = unnamed.filter_map(|change| change.old.as_ref().or(change.new.as_ref()));
            let lost: f64 = sides.map(|side| weight(&side.sum, self.by) as f64).sum();
            let share = lost / run.sum.max(1) as f64;
            if share >= WORTH_A_NOTE && report.modules.iter().any(|module| !module.path.is_empty()) {
                self.notes.push(format!(
                    "{:.0} % of the {} of {} are at stacks with functions that have no names, which match only in the same \
                     build; --symbols DIR says where its files are",
                    share * 100.0,
                    self.measure(),
                    run.path
                ));
            }
        }
        let differ: Vec<&str> = [
            ("mode", old.config.mode == new.config.mode),
            ("access", old.config.access == new.config.access),
            ("watch", old.config.watch == new.config.watch),
            ("depth", old.config.depth == new.config.depth),
        ]
        .into_iter()
        .filter_map(|(name, same)| (!same).then_some(name))
        .collect();
        if !differ.is_empty() {
            self.notes
                .push(format!("the runs were not watched in the same way: other {}", differ.join(", ")));
        }
    }
}

fn run<H>(path: &Path, report: &Report<H>, by: Weight) -> Run {
    let program = &report.program;
    let command = if program.cmdline.is_empty() { program.exe.clone() } else { program.cmdline.join(" ") };
    Run {
        path: printable(&path.display().to_string()),
        command: printable(&command),
        elapsed_ns: program.elapsed_ns,
        totals: report.totals.clone(),
        sum: report.sites.iter().fold(0, |sum: u64, site| sum.saturating_add(weight(site, by))),
    }
}

fn sides<H>(report: &Report<H>, stacks: &mut Stacks<'_>, by: Weight, scale: f64) -> HashMap<Identity, Side> {
    let mut sides: HashMap<Identity, Side> = HashMap::new();
    for site in &report.sites {
        let side = sides.entry(stacks.identity(site)).or_default();
        if side.ids.is_empty() {
            side.sum.frames.clone_from(&site.frames);
        }
        add(&mut side.sum, site);
        side.ids.push(site.id);
    }
    sides.values_mut().for_each(|side| side.value = weight(&side.sum, by) as f64 / scale);
    sides
}

/// Largest change first.
fn by_size(a: &Change, b: &Change) -> Ordering {
    let size = |change: &Change| change.difference().abs();
    size(b).total_cmp(&size(a)).then_with(|| a.stack.cmp(&b.stack))
}

fn kind(old: Option<&Side>, new: &Side, threshold_percent: u32) -> Kind {
    let Some(old) = old else { return Kind::Appeared };
    let allowed = old.value * f64::from(threshold_percent) / 100.0;
    match new.value - old.value {
        difference if difference > allowed => Kind::Hotter,
        difference if difference < -allowed => Kind::Colder,
        _ => Kind::Unchanged,
    }
}
