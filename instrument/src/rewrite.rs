//! Puts the code around the accesses of a module.

use crate::access::{Block, Finder, Kind};
use crate::builder::Builder;
use crate::groups::{self, Group};
use crate::helpers::Helpers;
use crate::ir::{Module, Value};
use crate::options::Shape;

/// Instruments every function of the module; the result says whether anything was changed.
pub fn rewrite(module: Module, shape: Shape) -> Result<bool, String> {
    // Masked vector accesses become plain accesses of the active lanes, each behind a branch.
    module.run("function(scalarize-masked-mem-intrin)")?;
    let mut rewriter =
        Rewriter { module, shape, helpers: Helpers::new(shape), builder: Builder::new(module) };
    let functions = module.functions();
    functions
        .iter()
        .filter(|function| is_instrumented(**function))
        .for_each(|function| rewriter.function(*function));
    let names = rewriter.helpers.names();
    if names.is_empty() {
        return Ok(false);
    }
    module.link(&format!("{}{}", module.target_lines(), rewriter.helpers.text()))?;
    names.iter().filter_map(|name| module.function(name)).for_each(Value::make_internal);
    module.run("always-inline")?;
    Ok(true)
}

/// A naked function has no room for code.
fn is_instrumented(function: Value) -> bool {
    function.is_emitted() && !function.has_attribute("naked")
}

struct Rewriter {
    module: Module,
    shape: Shape,
    helpers: Helpers,
    builder: Builder,
}

impl Rewriter {
    fn function(&mut self, function: Value) {
        let finder = Finder::new(self.module, function);
        let mut changed = false;
        for instructions in function.blocks() {
            let plan = groups::plan(&self.module, &finder, &instructions, self.shape);
            changed |= !plan.groups.is_empty() || !plan.blocks.is_empty();
            plan.groups.iter().for_each(|group| self.group(group));
            plan.blocks.iter().for_each(|block| self.block(block));
        }
        if changed {
            // It writes counters now.
            function.drop_attribute("memory");
            function.drop_attribute("nosync");
        }
    }

    fn group(&mut self, group: &Group) {
        let (Some(first), Some(last)) = (group.members.first(), group.members.last()) else { return };
        self.builder.before(first.instruction);
        let helper = self.helpers.open(&group.touched);
        let result = self.call(&helper, &[first.instruction.operand(first.operand)]);
        for member in &group.members {
            // Nothing may merge, split, move or drop what has been counted.
            member.instruction.make_volatile();
            if self.shape == Shape::Alias {
                self.move_operand(member.instruction, member.operand, result);
            }
        }
        if self.shape != Shape::Alias {
            self.builder.after(last.instruction);
            self.close(result);
        }
    }

    fn block(&mut self, block: &Block) {
        self.builder.before(block.instruction);
        let length = self.builder.widened(block.length);
        if self.shape == Shape::Alias {
            for (operand, kind) in &block.sides {
                self.builder.before(block.instruction);
                let helper = self.helpers.range(*kind);
                let distance = self.call(&helper, &[block.instruction.operand(*operand), length]);
                self.move_operand(block.instruction, *operand, distance);
            }
            return;
        }
        let pointer = |side: &(u32, Kind)| block.instruction.operand(side.0);
        let result = match &block.sides[..] {
            [side] => {
                let helper = self.helpers.range(side.1);
                self.call(&helper, &[pointer(side), length])
            }
            sides => {
                let helper = self.helpers.copy();
                self.call(&helper, &[pointer(&sides[0]), pointer(&sides[1]), length])
            }
        };
        self.builder.after(block.instruction);
        self.close(result);
    }

    fn move_operand(&self, instruction: Value, operand: u32, distance: Value) {
        self.builder.before(instruction);
        let moved = self.builder.moved(instruction.operand(operand), distance);
        instruction.set_operand(operand, moved);
    }

    fn close(&mut self, result: Value) {
        let helper = self.helpers.close();
        self.call(&helper, &[result]);
    }

    fn call(&self, helper: &str, arguments: &[Value]) -> Value {
        let kinds: Vec<_> = arguments.iter().map(|argument| argument.kind()).collect();
        self.builder.call(self.module.declare(helper, &kinds), arguments)
    }
}
