//! The flame graph: all sites' call stacks as one tree, each node with the accesses, the bytes and the heat of what was
//! allocated below it. What no screen could show is cut.

use super::names::{Stack, Used};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use thermalloc_format::Site;

/// Calls at most from the root to a leaf; deeper stacks lose their inner end.
const DEEPEST: usize = 128;

/// A function, called by its parent.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    function: u32,
    parent: u32,
    weights: [f64; 3],
}

/// The tree; node 0 is the root, parents come before their children.
pub struct Flame {
    nodes: Vec<Node>,
}

/// The tree as the page carries it: one entry for each node.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tree {
    /// Index into the page's names; null: the root, or what was left out below a node.
    pub function: Vec<Option<u32>>,
    /// Index of the caller.
    pub parent: Vec<u32>,
    /// Accesses.
    pub accesses: Vec<u64>,
    /// Bytes allocated.
    pub bytes: Vec<u64>,
    /// Sum of the sites' accesses per byte of their peak, rounded to three digits.
    pub heat: Vec<f64>,
    /// Nodes that were left out, being too small to be seen.
    pub cut: usize,
}

impl Flame {
    /// From all sites.
    pub fn new<'a>(sites: impl Iterator<Item = (&'a Site, &'a Stack)>, unknown: u32) -> Self {
        let mut nodes = vec![Node::default()];
        let mut children: HashMap<(u32, u32), u32> = HashMap::new();
        for (site, stack) in sites {
            let weights = weights(site);
            let path: &[u32] = if stack.functions.is_empty() { &[unknown] } else { &stack.functions };
            let mut at = 0;
            add(&mut nodes[0], weights);
            for &function in path.iter().rev().take(DEEPEST) {
                at = *children.entry((at, function)).or_insert_with(|| {
                    nodes.push(Node { function, parent: at, weights: [0.0; 3] });
                    nodes.len() as u32 - 1
                });
                add(&mut nodes[at as usize], weights);
            }
        }
        Self { nodes }
    }

    /// What lies below kept nodes without being kept: one sum for each, in the order of the nodes. `place` has those kept.
    fn left_out(&self, place: &HashMap<u32, u32>) -> BTreeMap<u32, [f64; 3]> {
        let mut sums: BTreeMap<u32, [f64; 3]> = BTreeMap::new();
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            let parent = place.get(&node.parent).filter(|_| !place.contains_key(&(index as u32)));
            if let Some(&parent) = parent {
                let sum = sums.entry(parent).or_default();
                sum.iter_mut().zip(node.weights).for_each(|(sum, weight)| *sum += weight);
            }
        }
        sums
    }

    /// The `most` nodes that are widest by any of the weights, and for what each of them lacks a node without a name.
    pub fn tree(&self, most: usize, used: &mut Used<'_>) -> Tree {
        let total = self.nodes[0].weights;
        let share = |node: &Node| {
            let shares = node.weights.iter().zip(total).map(|(weight, total)| weight / total.max(1e-300));
            shares.fold(0.0, f64::max)
        };
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        // A parent is at least as wide as its children, and comes first among equals: no node is kept without it.
        let shares: Vec<f64> = self.nodes.iter().map(share).collect();
        order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]).then(a.cmp(&b)));
        order.truncate(most.max(1));
        order.sort_unstable();
        let place: HashMap<u32, u32> =
            order.iter().enumerate().map(|(new, &old)| (old as u32, new as u32)).collect();
        let mut tree = Tree { cut: self.nodes.len() - order.len(), ..Tree::default() };
        for &index in &order {
            let node = &self.nodes[index];
            let function = (index > 0).then(|| used.index(node.function));
            tree.push(function, place.get(&node.parent).copied().unwrap_or(0), node.weights);
        }
        for (parent, weights) in self.left_out(&place) {
            tree.push(None, parent, weights);
        }
        tree
    }
}

impl Tree {
    fn push(&mut self, function: Option<u32>, parent: u32, weights: [f64; 3]) {
        self.function.push(function);
        self.parent.push(parent);
        self.accesses.push(weights[0] as u64);
        self.bytes.push(weights[1] as u64);
        self.heat.push(rounded(weights[2]));
    }
}

fn weights(site: &Site) -> [f64; 3] {
    let accesses = site.reads as f64 + site.writes as f64;
    [accesses, site.bytes as f64, accesses / site.peak_live_bytes.max(1) as f64]
}

fn add(node: &mut Node, weights: [f64; 3]) {
    for (sum, weight) in node.weights.iter_mut().zip(weights) {
        *sum += weight;
    }
}

fn rounded(value: f64) -> f64 {
    if value >= 100.0 { value.round() } else { (value * 1000.0).round() / 1000.0 }
}

#[cfg(test)]
mod tests {
    use super::super::names::Names;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn children_are_within_their_parents(
            stacks in prop::collection::vec((prop::collection::vec(0u32..6, 0..6), 0u64..100), 1..40), most in 1usize..50,
        ) {
            let sites: Vec<(Site, Stack)> = stacks.into_iter().map(|(functions, reads)| {
                let site = Site { reads, bytes: reads * 3, peak_live_bytes: 7, ..Site::default() };
                (site, Stack { functions, telling: None })
            }).collect();
            let flame = Flame::new(sites.iter().map(|(site, stack)| (site, stack)), 99);
            let names = Names::default();
            let tree = flame.tree(most, &mut Used::new(&names));
            let total: u64 = sites.iter().map(|(site, _)| site.reads).sum();
            prop_assert_eq!(tree.accesses[0], total);
            prop_assert!(tree.parent.len() <= 2 * most);
            let mut sums = vec![0; tree.parent.len()];
            for at in 1..tree.parent.len() {
                prop_assert!((tree.parent[at] as usize) < at);
                sums[tree.parent[at] as usize] += tree.accesses[at];
            }
            prop_assert!(sums.iter().zip(&tree.accesses).all(|(sum, own)| sum <= own));
        }
    }
}
