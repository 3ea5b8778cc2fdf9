//! Libraries that come and go: stacks stay right, and modules that have gone keep their index.

mod unwind_support;

use thermalloc_monitor::unwind::{locate, modules};
use unwind_support::{Library, Observation, compile, names, observations, probe};

/// Two variants whose code differs in the size of a frame alone, so that they have the same return addresses.
#[test]
fn a_library_in_the_place_of_another() {
    let paths =
        [("small", "-DPAD=24"), ("large", "-DPAD=88")].map(|(tag, pad)| compile("victim.c", tag, &[pad]));
    let mut places = Vec::new();
    for round in 0..6 {
        let path = &paths[round % 2];
        let library = Library::open(path);
        let Observation { ours, theirs } = library.run("chain").remove(0);
        assert_eq!(ours, theirs, "{:?} but {:?}", names(&ours), names(&theirs));
        assert_eq!(names(&ours)[..3], ["leaf", "middle", "chain"]);
        let (index, offset) = locate(ours[0]).expect("the library");
        let module = modules::get(index).expect("a module");
        assert_eq!((module.path.as_str(), module.loaded), (path.to_str().expect("UTF-8"), true));
        library.close();
        places.push((path.clone(), module.base, ours[0], index, offset));
    }
    assert_eq!(observations(|| (0..100).for_each(|_| probe())).len(), 100);
    for (path, base, frame, index, offset) in &places {
        assert!(!modules::get(*index).expect("still there").loaded, "noticed in passing");
        assert_eq!(locate(*frame), None);
        let mut again = places.iter().filter(|(p, b, ..)| (p, b) == (path, base));
        assert!(again.all(|(.., i, o)| (i, o) == (index, offset)), "{places:?}");
    }
    let [first, second] = [&places[0], &places[1]].map(|place| (place.1, place.2));
    assert_eq!(first, second, "other addresses: this run has shown nothing about stale rules");
}
