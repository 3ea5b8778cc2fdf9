// A Rust program with threads and channels: producers, a pool of workers behind one queue, a collector.
use std::collections::BTreeMap;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;

fn main() {
    let (tasks, queue) = sync_channel::<String>(8);
    let queue = Arc::new(Mutex::new(queue));
    let (results, collected) = channel::<(usize, String)>();
    let totals = Arc::new(RwLock::new(BTreeMap::new()));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (queue, results, totals) = (Arc::clone(&queue), results.clone(), Arc::clone(&totals));
            thread::spawn(move || {
                loop {
                    let Ok(task) = queue.lock().unwrap().recv() else { break };
                    let reversed: String = task.chars().rev().collect();
                    *totals.write().unwrap().entry(task.len()).or_insert(0usize) += 1;
                    results.send((task.len(), reversed)).unwrap();
                }
            })
        })
        .collect();
    drop(results);
    let producers: Vec<_> = (0..3)
        .map(|producer| {
            let tasks = tasks.clone();
            thread::spawn(move || (0..100).for_each(|i| tasks.send(format!("{producer}:{}", i * i)).unwrap()))
        })
        .collect();
    drop(tasks);
    let mut all: Vec<_> = collected.iter().collect();
    all.sort();
    producers.into_iter().chain(workers).for_each(|thread| thread.join().unwrap());
    println!("{} results, first {:?}, last {:?}", all.len(), all[0], all[all.len() - 1]);
    println!("{:?}", totals.read().unwrap());
    let caught = thread::spawn(|| {
        let text = vec![String::from("a panic that unwinds"); 3];
        std::panic::set_hook(Box::new(|_| {}));
        std::panic::panic_any(text.join(" "))
    })
    .join();
    println!("{}", caught.unwrap_err().downcast::<String>().unwrap());
}
