//! Libraries that come and go: stacks stay right, and modules that have gone keep their index.

mod unwind_support;

use std::sync::{Mutex, PoisonError};
use thermalloc_monitor::unwind::{locate, modules};
use unwind_support::{Library, Observation, compile, names, observations, probe};

/// One test at a time: the other's libraries would be news too, and take the place that is to be used again.
static LOADER: Mutex<()> = Mutex::new(());

/// Two variants whose code differs in the size of a frame alone, so that they have the same return addresses.
#[test]
fn a_library_in_the_place_of_another() {
    let _guard = LOADER.lock().unwrap_or_else(PoisonError::into_inner);
    let paths =
        [("small", "-DPAD=24"), ("large", "-DPAD=88")].map(|(tag, pad)| compile("victim.c", tag, &[pad]));
    let mut places = Vec::new();
    for round in 0..6 {
        let path = &paths[round % 2];
        let library = Library::open(path);
        let Observation { ours, theirs } = library.run("chain").remove(0);
        assert_eq!(ours, theirs, "round {round}: {:?} but {:?}", names(&ours), names(&theirs));
        assert_eq!(names(&ours)[..3], ["leaf", "middle", "chain"]);
        let (index, offset) = locate(ours[0]).expect("the library");
        let module = modules::get(index).expect("a module");
        assert_eq!((module.path.as_str(), module.loaded), (path.to_str().expect("UTF-8"), true));
        library.close();
        places.push((path.clone(), module.base, ours[0], index, offset));
    }
    modules::poll();
    for (path, base, frame, index, offset) in &places {
        assert!(!modules::get(*index).expect("still there").loaded);
        assert_eq!(locate(*frame), None);
        let mut again = places.iter().filter(|(p, b, ..)| (p, b) == (path, base));
        assert!(again.all(|(.., i, o)| (i, o) == (index, offset)), "{places:?}");
    }
    let [first, second] = [&places[0], &places[1]].map(|place| (place.1, place.2));
    assert_eq!(first, second, "other addresses: this run has shown nothing about stale rules");
}

/// Captures that meet nothing new notice that a module has gone, if there are enough of them.
#[test]
fn a_library_that_goes_is_noticed_in_passing() {
    let _guard = LOADER.lock().unwrap_or_else(PoisonError::into_inner);
    let mut library = Some(Library::open(&compile("victim.c", "gone", &[])));
    let leaf = library.as_ref().expect("open").symbol("leaf") as u64;
    let (index, _) = locate(leaf).expect("the library");
    for expected in [true, false] {
        let seen = observations(|| (0..100).for_each(|_| probe()));
        assert_eq!(seen.len(), 100);
        assert_eq!(modules::get(index).expect("a module").loaded, expected);
        if let Some(library) = library.take() {
            library.close();
        }
    }
}
