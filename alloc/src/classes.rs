//! Size classes: chunk sizes grow by a factor, as `slabs_init` in Memcached's slabs.c lays them out.
//!
//! A [`ClassTable`] is a plain value computed once. Lookup of a class by size is one table access for small
//! sizes and one access plus a step or two for larger ones; division by a chunk size is a multiplication by
//! its reciprocal.
//!
//! # Signal context
//! Reads only.

use crate::meta::SLOT_BYTES;

/// Most classes a table can have, those for aligned requests included.
pub const MAX_CLASSES: usize = 96;
/// Memcached's bound on the classes of one table (`MAX_NUMBER_OF_SLAB_CLASSES` less the unused class 0).
const MAX_GROWING: usize = 63;
/// Sizes up to this are looked up in steps of 8 bytes, which is exact.
pub(crate) const SMALL: usize = 1024;
const SMALL_STEP: usize = 8;
const LARGE_STEP: usize = 256;
const MAX_CHUNK: usize = SLOT_BYTES / 2;
const LARGE_ENTRIES: usize = MAX_CHUNK / LARGE_STEP + 1;
/// What malloc promises of every pointer.
pub(crate) const MIN_ALIGN: usize = 16;

/// Index of a size class in [`classes()`](crate::classes()).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u16);

impl ClassId {
    /// Objects that have slots of their own instead of a chunk of a class.
    pub const SPAN: ClassId = ClassId(u16::MAX);
}

/// Memcached's knobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassParams {
    /// Bytes of the first growing class (Memcached: 48 for the item header, plus `-n`).
    pub min_chunk: usize,
    /// Growth from class to class (`-f`), more than 1.
    pub factor: f64,
    /// Chunk sizes are rounded up to a multiple of this power of two. A heap needs at least 16.
    pub align: usize,
    /// Bytes of a slab page; heaps have 1 MiB.
    pub slab_page: usize,
    /// Bytes of the last class; 1 KiB to half a slab page.
    pub max_chunk: usize,
}

impl ClassParams {
    /// Memcached's defaults: `-n 48 -f 1.25`.
    pub const MEMCACHED: Self =
        Self { min_chunk: 96, factor: 1.25, align: 8, slab_page: SLOT_BYTES, max_chunk: MAX_CHUNK };
    /// malloc's: every chunk is 16-byte aligned.
    pub const MALLOC: Self =
        Self { min_chunk: 96, factor: 1.25, align: 16, slab_page: SLOT_BYTES, max_chunk: MAX_CHUNK };

    fn valid(&self) -> bool {
        self.min_chunk >= 16
            && self.factor > 1.0
            && self.factor <= 1024.0
            && self.align.is_power_of_two()
            && self.align >= 8
            && self.slab_page == SLOT_BYTES
            && self.max_chunk <= MAX_CHUNK
            && self.max_chunk >= SMALL
            && self.max_chunk.is_multiple_of(self.align)
            && self.min_chunk <= self.max_chunk
    }
}

/// Classes that come before the growing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// None: the table is Memcached's.
    None,
    /// 16, 32, 48, ... below `min_chunk`.
    Malloc,
}

/// One size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Bytes of a chunk.
    pub chunk_size: u32,
    /// Chunks in a slab page.
    pub per_slab: u32,
    /// 2^44 / chunk_size, rounded up.
    reciprocal: u64,
}

impl Class {
    const EMPTY: Self = Self { chunk_size: 0, per_slab: 0, reciprocal: 0 };

    const fn new(chunk_size: usize) -> Self {
        Self {
            chunk_size: chunk_size as u32,
            per_slab: (SLOT_BYTES / chunk_size) as u32,
            reciprocal: (1u64 << 44).div_ceil(chunk_size as u64),
        }
    }

    /// `offset / chunk_size` for an offset within a slot. Exact: the reciprocal errs by less than 1, so the
    /// product by less than 2^20, which after the shift is 2^-24, less than 1 / chunk_size.
    #[inline(always)]
    pub(crate) fn index_of(&self, offset: usize) -> u32 {
        ((offset as u64 * self.reciprocal) >> 44) as u32
    }
}

/// All classes of a heap, smallest first; behind them the power-of-two classes that serve aligned requests.
#[derive(Clone)]
pub struct ClassTable {
    classes: [Class; MAX_CLASSES],
    plain: usize,
    len: usize,
    small: [u8; SMALL / SMALL_STEP + 1],
    large: [u8; LARGE_ENTRIES],
}

impl ClassTable {
    pub(crate) const EMPTY: Self = Self {
        classes: [Class::EMPTY; MAX_CLASSES],
        plain: 0,
        len: 0,
        small: [0; SMALL / SMALL_STEP + 1],
        large: [0; LARGE_ENTRIES],
    };

    /// The table of these parameters, or `None` where [`ClassParams`] says they are out of range.
    pub fn new(preset: Preset, params: &ClassParams) -> Option<Self> {
        if !params.valid() {
            return None;
        }
        let mut table = Self::EMPTY;
        if preset == Preset::Malloc {
            let mut size = MIN_ALIGN;
            while size < params.min_chunk && size < 128 {
                table.push(size);
                size += MIN_ALIGN;
            }
        }
        table.push_growing(params);
        table.plain = table.len;
        let mut size = MIN_ALIGN;
        while size <= params.max_chunk {
            if table.sizes().all(|known| known != size) {
                table.push(size);
            }
            size *= 2;
        }
        table.fill_lookup();
        Some(table)
    }

    /// `slabs_init`: record, grow, round up; the last class takes the largest chunk. C's `unsigned int size
    /// *= double` truncates, and so does this.
    fn push_growing(&mut self, params: &ClassParams) {
        let mut size = params.min_chunk;
        let mut growing = 1;
        while growing < MAX_GROWING && (size as f64) < params.max_chunk as f64 / params.factor {
            size = size.next_multiple_of(params.align);
            self.push(size);
            size = (size as f64 * params.factor) as usize;
            growing += 1;
        }
        self.push(params.max_chunk);
    }

    fn push(&mut self, size: usize) {
        // Rounding up can reach a size twice when the factor is small; Memcached keeps both, and the first is
        // used.
        if self.len < MAX_CLASSES {
            self.classes[self.len] = Class::new(size);
            self.len += 1;
        }
    }

    fn fill_lookup(&mut self) {
        let fit = |table: &Self, size: usize| {
            let plain = &table.classes[..table.plain];
            plain.iter().position(|class| class.chunk_size as usize >= size).unwrap_or(table.plain) as u8
        };
        for step in 0..self.small.len() {
            self.small[step] = fit(self, step * SMALL_STEP);
        }
        for step in 0..self.large.len() {
            self.large[step] = fit(self, step * LARGE_STEP + 1);
        }
    }

    /// All classes: those that sizes select, then those for aligned requests alone.
    pub fn classes(&self) -> &[Class] {
        &self.classes[..self.len]
    }

    /// The classes that sizes select: with Memcached's parameters, Memcached's.
    pub fn plain(&self) -> &[Class] {
        &self.classes[..self.plain]
    }

    fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.classes().iter().map(|class| class.chunk_size as usize)
    }

    /// A class by its index. An index that is not one yields an empty class.
    #[inline(always)]
    pub(crate) fn class(&self, id: usize) -> &Class {
        &self.classes[if id < MAX_CLASSES { id } else { MAX_CLASSES - 1 }]
    }

    /// [`fit`](Self::fit) for sizes up to [`SMALL`].
    #[inline(always)]
    pub(crate) fn fit_small(&self, size: usize) -> usize {
        self.small[size.min(SMALL).div_ceil(SMALL_STEP)] as usize
    }

    /// The smallest class that holds `size` bytes at 16-byte alignment, or `None` above the largest.
    #[inline(always)]
    pub(crate) fn fit(&self, size: usize) -> Option<usize> {
        if size <= SMALL {
            let class = self.fit_small(size);
            return (class < self.plain).then_some(class);
        }
        let mut class = *self.large.get((size - 1) / LARGE_STEP)? as usize;
        while class < self.plain {
            if self.class(class).chunk_size as usize >= size {
                return Some(class);
            }
            class += 1;
        }
        None
    }

    /// A class whose chunks hold `size` bytes and all start at multiples of `align`: one of the next few
    /// classes if it happens to be aligned, else the power of two.
    pub(crate) fn fit_aligned(&self, size: usize, align: usize) -> Option<usize> {
        const TRIED: usize = 3;
        let first = self.fit(size)?;
        let aligned = |class: &usize| (self.class(*class).chunk_size as usize).is_multiple_of(align);
        let near = (first..self.plain.min(first + TRIED)).find(aligned);
        near.or_else(|| {
            let wanted = size.max(align).checked_next_power_of_two()?;
            self.sizes().position(|size| size == wanted)
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn sizes(table: &ClassTable) -> Vec<u32> {
        table.plain().iter().map(|class| class.chunk_size).collect()
    }

    #[test]
    fn malloc_table_starts_small_and_ends_at_half_a_slab_page() {
        let table = ClassTable::new(Preset::Malloc, &ClassParams::MALLOC).unwrap();
        let sizes = sizes(&table);
        assert_eq!(sizes[..8], [16, 32, 48, 64, 80, 96, 128, 160]);
        assert_eq!(*sizes.last().unwrap(), 512 << 10);
        assert!(sizes.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let good = ClassParams::MALLOC;
        for bad in [
            ClassParams { factor: 1.0, ..good },
            ClassParams { factor: f64::NAN, ..good },
            ClassParams { align: 24, ..good },
            ClassParams { max_chunk: 1 << 20, ..good },
            ClassParams { min_chunk: 1 << 20, ..good },
        ] {
            assert!(ClassTable::new(Preset::Malloc, &bad).is_none(), "{bad:?}");
        }
    }

    fn params() -> impl Strategy<Value = ClassParams> {
        (16usize..2048, 1.01f64..4.0, 3u32..8, 12u32..20).prop_map(|(min_chunk, factor, align, max)| {
            ClassParams { min_chunk, factor, align: 1 << align, slab_page: SLOT_BYTES, max_chunk: 1 << max }
        })
    }

    proptest! {
        #[test]
        fn fit_is_the_first_class_that_is_large_enough(params in params(), size in 0usize..600_000) {
            let table = ClassTable::new(Preset::Malloc, &params).unwrap();
            let expected = sizes(&table).iter().position(|&chunk| chunk as usize >= size);
            prop_assert_eq!(table.fit(size), expected);
        }

        #[test]
        fn aligned_classes_are_aligned(params in params(), size in 0usize..600_000, shift in 0u32..20) {
            let table = ClassTable::new(Preset::Malloc, &params).unwrap();
            let align = 1usize << shift;
            match table.fit_aligned(size, align) {
                Some(class) => {
                    let chunk = table.class(class).chunk_size as usize;
                    prop_assert!(chunk >= size && chunk.is_multiple_of(align));
                }
                None => prop_assert!(size.max(align).next_power_of_two() > params.max_chunk),
            }
        }

        #[test]
        fn the_reciprocal_divides_exactly(size in 2usize..=32_768, offset in 0usize..SLOT_BYTES) {
            let size = size * 16;
            prop_assert_eq!(Class::new(size).index_of(offset) as usize, offset / size);
        }
    }
}
