//! Makes new instructions.
//!
//! # Safety
//! As in `ir`: values belong to the module under the pass, and are of the kind that a method's documentation names.
#![allow(unsafe_code)]

use llvm_plugin::inkwell::llvm_sys;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

use crate::ir::{Module, Value, llvm};

/// Makes new instructions.
pub struct Builder {
    builder: LLVMBuilderRef,
    module: Module,
}

impl Builder {
    /// A builder for that module.
    pub fn new(module: Module) -> Builder {
        let context = llvm!(LLVMGetModuleContext(module.raw()));
        Builder { builder: llvm!(LLVMCreateBuilderInContext(context)), module }
    }

    /// From now on instructions go directly before `instruction` and take its line.
    pub fn before(&self, instruction: Value) {
        llvm!(LLVMPositionBuilderBefore(self.builder, instruction.raw()));
    }

    /// From now on instructions go directly after `instruction`, which ends no block.
    pub fn after(&self, instruction: Value) {
        self.before(Value::from_raw(llvm!(LLVMGetNextInstruction(instruction.raw()))));
    }

    /// A call of a function that [`Module::declare`] gave.
    pub fn call(&self, function: Value, arguments: &[Value]) -> Value {
        let kind = llvm!(LLVMGlobalGetValueType(function.raw()));
        let mut values: Vec<LLVMValueRef> = arguments.iter().map(|argument| argument.raw()).collect();
        let (count, name) = (values.len() as u32, c"".as_ptr());
        Value::from_raw(llvm!(LLVMBuildCall2(
            self.builder,
            kind,
            function.raw(),
            values.as_mut_ptr(),
            count,
            name
        )))
    }

    /// `pointer` moved by `distance` bytes.
    pub fn moved(&self, pointer: Value, distance: Value) -> Value {
        let (byte, name) = (self.module.int(8).raw(), c"".as_ptr());
        let mut index = distance.raw();
        Value::from_raw(llvm!(LLVMBuildGEP2(self.builder, byte, pointer.raw(), &mut index, 1, name)))
    }

    /// `value`, an integer, as an i64.
    pub fn widened(&self, value: Value) -> Value {
        let kind = self.module.int(64).raw();
        Value::from_raw(llvm!(LLVMBuildIntCast2(self.builder, value.raw(), kind, 0, c"".as_ptr())))
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        llvm!(LLVMDisposeBuilder(self.builder));
    }
}
