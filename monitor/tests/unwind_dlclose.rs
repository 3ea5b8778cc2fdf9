//! Libraries that come and go: stacks stay right, and modules that have gone keep their index.

mod unwind_support;

use thermalloc_monitor::unwind::{locate, modules};
use unwind_support::{Library, Observation, compile, names};

/// The last of several captures: enough of them for the thread to ask the loader for news.
fn settled(library: &Library) -> Observation {
    (0..100).map(|_| library.run("chain").remove(0)).last().expect("one")
}

#[test]
fn a_library_in_the_place_of_another() {
    let paths =
        [("small", "-DPAD=24"), ("large", "-DPAD=424")].map(|(tag, pad)| compile("victim.c", tag, &[pad]));
    let mut places = Vec::new();
    for round in 0..6 {
        let path = &paths[round % 2];
        let library = Library::open(path);
        let Observation { ours, theirs } = settled(&library);
        assert_eq!(ours, theirs, "{:?} but {:?}", names(&ours), names(&theirs));
        assert_eq!(names(&ours)[..3], ["leaf", "middle", "chain"]);
        let (index, offset) = locate(ours[0]).expect("the library");
        let module = modules::get(index).expect("a module");
        assert_eq!((module.path.as_str(), module.loaded), (path.to_str().expect("UTF-8"), true));
        library.close();
        modules::poll();
        assert!(!modules::get(index).expect("still there").loaded);
        assert_eq!(locate(ours[0]), None);
        places.push((path.clone(), module.base, index, offset));
    }
    for (path, base, index, offset) in &places {
        let again = places.iter().filter(|(p, b, ..)| (p, b) == (path, base));
        assert!(again.clone().all(|(.., i, o)| (i, o) == (index, offset)), "{places:?}");
    }
    let same_place = places[0].1 == places[1].1;
    assert!(
        same_place,
        "the loader has not used the same addresses again, so this test shows nothing: {places:?}"
    );
}
