//! The patterns: what programs do to an allocator, each with its randomness fixed. Objects are touched as a
//! program would.
//!
//! # Safety
//! Every object is touched only while live, within its size.

use crate::allocators::Allocator;
use std::sync::mpsc::sync_channel;

/// A pattern for one allocator; the argument scales the number of operations, 1.0 for a full run.
pub type Pattern = fn(f64);

pub const NAMES: [&str; 9] = [
    "small-churn",
    "mixed-sizes",
    "producer-consumer",
    "realloc-growth",
    "large-blocks",
    "many-live",
    "thread-churn",
    "zeroed",
    "batch-lifo",
];

pub fn pattern<A: Allocator>(name: &str) -> Option<Pattern> {
    Some(match name {
        "small-churn" => |scale| churn::<A>(times(40_000_000, scale), 2_000, |rng| 8 + rng.below(120)),
        "mixed-sizes" => |scale| churn::<A>(times(8_000_000, scale), 4_000, log_uniform),
        "producer-consumer" => producer_consumer::<A>,
        "realloc-growth" => realloc_growth::<A>,
        "large-blocks" => large_blocks::<A>,
        "many-live" => many_live::<A>,
        "thread-churn" => thread_churn::<A>,
        "zeroed" => zeroed::<A>,
        "batch-lifo" => batch_lifo::<A>,
        _ => return None,
    })
}

fn times(full: usize, scale: f64) -> usize {
    ((full as f64 * scale) as usize).max(1)
}

/// Marsaglia's xorshift64 (2003).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (((self.next() >> 32) * bound as u64) >> 32) as usize
    }
}

/// 8 bytes to 32 KiB, each power of two as likely as the next.
fn log_uniform(rng: &mut Rng) -> usize {
    let base = 8 << rng.below(12);
    base + rng.below(base)
}

/// Writes an object's first word, and one word of each further page.
fn touch(at: *mut u8, size: usize) {
    assert!(!at.is_null());
    for offset in (0..size).step_by(4096) {
        // SAFETY: inside the object.
        unsafe { at.add(offset).write_volatile(size as u8) };
    }
}

#[derive(Clone, Copy)]
struct Object {
    at: *mut u8,
    size: usize,
}

impl Object {
    const NONE: Self = Self { at: std::ptr::null_mut(), size: 0 };

    fn new<A: Allocator>(size: usize) -> Self {
        let at = A::allocate(size);
        touch(at, size);
        Self { at, size }
    }

    fn free<A: Allocator>(&mut self) {
        if !self.at.is_null() {
            A::free(self.at, self.size);
            *self = Self::NONE;
        }
    }
}

/// Replaces random objects of a working set.
fn churn<A: Allocator>(operations: usize, live: usize, size: fn(&mut Rng) -> usize) {
    let mut rng = Rng(42);
    let mut set = vec![Object::NONE; live];
    for _ in 0..operations {
        let place = rng.below(live);
        set[place].free::<A>();
        set[place] = Object::new::<A>(size(&mut rng));
    }
    set.iter_mut().for_each(Object::free::<A>);
}

/// One thread allocates, another frees, in batches.
fn producer_consumer<A: Allocator>(scale: f64) {
    const BATCH: usize = 128;
    let (send, receive) = sync_channel::<[(usize, usize); BATCH]>(16);
    let consumer = std::thread::spawn(move || {
        for batch in receive {
            for (at, size) in batch {
                Object { at: at as *mut u8, size }.free::<A>();
            }
        }
    });
    let mut rng = Rng(42);
    for _ in 0..times(80_000, scale) {
        let batch = std::array::from_fn(|_| {
            let object = Object::new::<A>(16 + rng.below(500));
            (object.at as usize, object.size)
        });
        send.send(batch).expect("the consumer runs");
    }
    drop(send);
    consumer.join().expect("the consumer ends");
}

/// Buffers that grow side by side to 1 MiB in steps of an eighth, and one that grows to 64 MiB.
fn realloc_growth<A: Allocator>(scale: f64) {
    for _ in 0..times(30, scale) {
        let mut buffers = [Object::NONE; 16];
        buffers.iter_mut().for_each(|buffer| *buffer = Object::new::<A>(32));
        while buffers[0].size < 1 << 20 {
            for buffer in &mut buffers {
                let larger = buffer.size + buffer.size / 8 + 16;
                grow::<A>(buffer, larger);
            }
        }
        buffers.iter_mut().for_each(Object::free::<A>);
        let mut large = Object::new::<A>(1 << 16);
        while large.size < 64 << 20 {
            let larger = large.size + large.size / 4;
            grow::<A>(&mut large, larger);
        }
        large.free::<A>();
    }
}

fn grow<A: Allocator>(buffer: &mut Object, size: usize) {
    let old = buffer.size;
    *buffer = Object { at: A::resize(buffer.at, old, size), size };
    // SAFETY: inside the object.
    touch(unsafe { buffer.at.add(old) }, size - old);
}

/// Replaces random ones of 16 blocks of 256 KiB to 8 MiB.
fn large_blocks<A: Allocator>(scale: f64) {
    churn::<A>(times(4_000, scale), 16, |rng| {
        let base = (256 << 10) << rng.below(5);
        base + rng.below(base)
    });
}

/// A million objects; then rounds of freeing a random half and filling up again.
fn many_live<A: Allocator>(scale: f64) {
    let live = times(1_000_000, scale);
    let mut rng = Rng(42);
    let mut set = vec![Object::NONE; live];
    for round in 0..4 {
        for object in &mut set {
            if round > 0 && rng.below(2) == 0 {
                object.free::<A>();
            }
        }
        for object in &mut set {
            if object.at.is_null() {
                *object = Object::new::<A>(16 + rng.below(240));
            }
        }
    }
    set.iter_mut().for_each(Object::free::<A>);
}

/// Threads that live for 5,000 operations, two at a time.
fn thread_churn<A: Allocator>(scale: f64) {
    for _ in 0..times(1_000, scale) {
        let pair = [(); 2].map(|()| std::thread::spawn(|| churn::<A>(5_000, 100, |rng| 8 + rng.below(1000))));
        for thread in pair {
            thread.join().expect("the thread ends");
        }
    }
}

/// calloc of 64 bytes to 256 KiB.
fn zeroed<A: Allocator>(scale: f64) {
    let mut rng = Rng(42);
    let mut set = vec![Object::NONE; 500];
    for _ in 0..times(400_000, scale) {
        let place = rng.below(set.len());
        set[place].free::<A>();
        let size = 64 << rng.below(12);
        let at = A::zeroed(size);
        touch(at, size);
        set[place] = Object { at, size };
    }
    set.iter_mut().for_each(Object::free::<A>);
}

/// Builds up a hundred thousand small objects and frees them in reverse, as recursive programs do.
fn batch_lifo<A: Allocator>(scale: f64) {
    let mut rng = Rng(42);
    let mut stack = Vec::with_capacity(100_000);
    for _ in 0..times(100, scale) {
        stack.extend((0..100_000).map(|_| Object::new::<A>(16 + rng.below(100))));
        while let Some(mut object) = stack.pop() {
            object.free::<A>();
        }
    }
}
