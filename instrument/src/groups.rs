//! Which accesses of a block share one check or one window.
//!
//! Accesses through pointers derived from the same base within one object are all inside the heap or all outside. A
//! group is counted at its first member, so between its first and last member nothing may leave the block or stand
//! for a point in time: no call, no atomic or volatile access, no division. What remains between are loads, stores
//! and arithmetic, which only a fatal fault can stop.

use crate::access::{Access, Block, Finder, Found, Kind};
use crate::ir::{Module, Value};
use crate::options::Shape;
use crate::origin;
use crate::pieces::Piece;

/// More members would make the helper functions long.
const MEMBERS: usize = 16;

/// Accesses with one check, in program order.
pub struct Group {
    base: Value,
    /// Distance of the first member from the base.
    start: i64,
    /// The accesses.
    pub members: Vec<Access>,
    /// What they touch, from the pointer of the first.
    pub touched: Vec<(Kind, Piece)>,
}

impl Group {
    fn new(base: Value, offset: i64, access: Access) -> Group {
        let mut group = Group { base, start: offset, members: Vec::new(), touched: Vec::new() };
        group.add(offset, access);
        group
    }

    fn add(&mut self, offset: i64, access: Access) {
        let distance = offset - self.start;
        let moved =
            |piece: &Piece| (access.kind, Piece { offset: piece.offset + distance, size: piece.size });
        self.touched.extend(access.pieces.iter().map(moved));
        self.members.push(access);
    }
}

/// What is to be done in one block.
#[derive(Default)]
pub struct Plan {
    /// Accesses of known size.
    pub groups: Vec<Group>,
    /// Memory intrinsics.
    pub blocks: Vec<Block>,
}

/// Plans for the instructions of one block.
pub fn plan(module: &Module, finder: &Finder, instructions: &[Value], shape: Shape) -> Plan {
    let mut plan = Plan::default();
    // Indices of the groups that may still grow.
    let mut open: Vec<usize> = Vec::new();
    for instruction in instructions {
        match finder.find(*instruction) {
            Found::Nothing => {}
            Found::Barrier => open.clear(),
            Found::Block(block) => {
                open.clear();
                plan.blocks.push(block);
            }
            Found::Access(access) => place(module, &mut plan, &mut open, access, shape),
        }
    }
    plan
}

fn place(module: &Module, plan: &mut Plan, open: &mut Vec<usize>, access: Access, shape: Shape) {
    let (base, offset) = origin::base(module, access.instruction.operand(access.operand));
    if access.alone {
        open.clear();
        plan.groups.push(Group::new(base, offset, access));
        return;
    }
    let fits =
        |index: &&usize| plan.groups[**index].base == base && plan.groups[**index].members.len() < MEMBERS;
    if let Some(index) = open.iter().find(fits).copied() {
        plan.groups[index].add(offset, access);
        return;
    }
    // Windows restore what the register held, so they must not overlap.
    if shape != Shape::Alias {
        open.clear();
    }
    open.push(plan.groups.len());
    plan.groups.push(Group::new(base, offset, access));
}
