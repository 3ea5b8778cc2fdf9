//! Giving back to the system what the heap keeps for reuse.

use crate::{init, pool, threads};

/// Empties the calling thread's cache and gives back the memory of all free slab pages and spans. Returns
/// whether there was any.
pub fn trim() -> bool {
    if !init::is_initialized() {
        return false;
    }
    if let Some(cache) = threads::cached()
        && !threads::is_closed(cache)
    {
        cache.empty();
    }
    pool::purge_all()
}
