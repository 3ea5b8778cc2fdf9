//! A model of the heap: what is live, with which contents. Random operations run against heap and model
//! alike.
//!
//! # Safety
//! The model's objects are the heap's live objects, and nobody else's.
#![allow(unsafe_code, dead_code)]

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::mpsc;
use thermalloc_alloc::{Watch, alias_of};
use thermalloc_alloc::{
    allocate, allocate_zeroed, check_invariants, free, object_at, reallocate, usable_size,
};

static ZEROES: [u8; 4096] = [0; 4096];

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Allocate { size: usize, align: usize, watch: bool, zeroed: bool },
    Free { which: usize, elsewhere: bool },
    Reallocate { which: usize, size: usize },
    Trim,
}

pub fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0usize..200,
        4 => 0usize..5000,
        2 => 0usize..700_000,
        1 => 0usize..6_000_000,
    ]
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let align = prop_oneof![6 => Just(16usize), 2 => (0u32..13).prop_map(|n| 1 << n), 1 => (13u32..23).prop_map(|n| 1 << n)];
    let op = prop_oneof![
        5 => (sizes(), align, any::<bool>(), any::<bool>())
            .prop_map(|(size, align, watch, zeroed)| Op::Allocate { size, align, watch, zeroed }),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(which, elsewhere)| Op::Free { which, elsewhere }),
        2 => (any::<usize>(), sizes()).prop_map(|(which, size)| Op::Reallocate { which, size }),
        1 => Just(Op::Trim),
    ];
    proptest::collection::vec(op, 1..120)
}

/// A live object: its bytes are `seed`, `seed + 1`, ... at a few places.
pub struct Live {
    pub at: *mut u8,
    pub size: usize,
    pub seed: u8,
    pub watch: Watch,
}

// SAFETY: an object may be used by any thread.
unsafe impl Send for Live {}

impl Live {
    /// Offsets that are written and checked: the ends, and every so often between.
    fn probes(size: usize) -> impl Iterator<Item = usize> {
        let step = 509.max(size / 512);
        (0..size.min(64)).chain((64..size).step_by(step)).chain(size.saturating_sub(64).max(64)..size)
    }

    fn cell(&self, n: usize) -> *mut u8 {
        (alias_of(self.at as usize) + n) as *mut u8
    }

    pub fn fill(&self) {
        for n in Self::probes(self.size) {
            // SAFETY: inside the object.
            unsafe { self.cell(n).write(self.seed.wrapping_add(n as u8)) };
        }
    }

    pub fn check(&self, size: usize) {
        for n in Self::probes(self.size).filter(|&n| n < size) {
            // SAFETY: inside the object.
            assert_eq!(unsafe { self.cell(n).read() }, self.seed.wrapping_add(n as u8), "byte {n} of {size}");
        }
    }
}

/// A thread that frees what it is sent.
pub struct Elsewhere {
    to: Option<mpsc::SyncSender<Live>>,
    done: mpsc::Receiver<()>,
}

impl Elsewhere {
    pub fn start() -> Self {
        let (to, inbox) = mpsc::sync_channel::<Live>(0);
        let (report, done) = mpsc::sync_channel(0);
        std::thread::spawn(move || {
            for object in inbox {
                // SAFETY: the model gave the object up.
                unsafe { free(object.at) }.unwrap();
                report.send(()).unwrap();
            }
        });
        Self { to: Some(to), done }
    }

    fn free(&self, object: Live) {
        self.to.as_ref().unwrap().send(object).unwrap();
        self.done.recv().unwrap();
    }
}

#[derive(Default)]
pub struct Model {
    live: Vec<Live>,
    seed: u8,
}

impl Model {
    pub fn step(&mut self, op: Op, elsewhere: &Elsewhere) {
        match op {
            Op::Allocate { size, align, watch, zeroed } => self.allocate(size, align, watch, zeroed),
            Op::Free { which, elsewhere: there } => {
                if let Some(object) = self.pick(which) {
                    object.check(object.size);
                    if there {
                        elsewhere.free(object);
                    } else {
                        // SAFETY: the model gave the object up.
                        unsafe { free(object.at) }.unwrap();
                    }
                }
            }
            Op::Reallocate { which, size } => self.reallocate(which, size),
            Op::Trim => {
                thermalloc_alloc::trim();
            }
        }
    }

    fn pick(&mut self, which: usize) -> Option<Live> {
        (!self.live.is_empty()).then(|| self.live.swap_remove(which % self.live.len()))
    }

    fn allocate(&mut self, size: usize, align: usize, watched: bool, zeroed: bool) {
        let watch = if watched { Watch::Watched } else { Watch::Unwatched };
        let at = if zeroed { allocate_zeroed(size, align, watch) } else { allocate(size, align, watch) };
        assert!(!at.is_null());
        if zeroed {
            // SAFETY: inside the new object.
            let bytes = unsafe { std::slice::from_raw_parts(alias_of(at as usize) as *const u8, size) };
            assert!(
                bytes.chunks(ZEROES.len()).all(|part| part == &ZEROES[..part.len()]),
                "calloc({size}) is zero"
            );
        }
        self.adopt(at, size, align, watch);
    }

    fn adopt(&mut self, at: *mut u8, size: usize, align: usize, watch: Watch) {
        let object = object_at(at as usize).unwrap();
        assert_eq!(object.base, at as usize);
        assert!(object.live && object.base.is_multiple_of(align.max(16)));
        assert_eq!(object.watched, watch == Watch::Watched);
        assert_eq!(usable_size(at), Ok(object.capacity));
        assert!(object.capacity >= size);
        let last = at as usize + object.capacity - 1;
        assert_eq!(object_at(last), Some(object));
        for other in &self.live {
            let (start, end) = (other.at as usize, other.at as usize + other.size);
            assert!(end <= at as usize || start > last, "objects do not overlap");
        }
        self.seed = self.seed.wrapping_add(31);
        let live = Live { at, size, seed: self.seed, watch };
        live.fill();
        self.live.push(live);
    }

    fn reallocate(&mut self, which: usize, size: usize) {
        let Some(mut object) = self.pick(which) else { return };
        // SAFETY: the model owns the object.
        let at = unsafe { reallocate(object.at, size, 16, object.watch) }.unwrap();
        assert!(!at.is_null());
        object.at = at;
        object.check(size.min(object.size));
        self.adopt(at, size, 16, object.watch);
    }

    /// The heap's live objects are the model's.
    pub fn compare(&self) {
        check_invariants().unwrap();
        let mut seen = Vec::new();
        thermalloc_alloc::for_each_live(|object| seen.push(object.base));
        let mut expected: Vec<usize> = self.live.iter().map(|live| live.at as usize).collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected);
    }

    pub fn free_all(&mut self) {
        for object in self.live.drain(..) {
            object.check(object.size);
            // SAFETY: the model gave the object up.
            unsafe { free(object.at) }.unwrap();
        }
    }
}

/// Runs random sequences against the heap as it is set up, checking it after each step.
pub fn run_model(cases: u32) {
    let elsewhere = Elsewhere::start();
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let result = TestRunner::new(config).run(&ops(), |ops| {
        let mut model = Model::default();
        for op in ops {
            model.step(op, &elsewhere);
            model.compare();
        }
        model.free_all();
        model.compare();
        Ok(())
    });
    result.unwrap();
}
