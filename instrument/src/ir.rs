//! The part of LLVM's C interface that the pass needs, as plain values.
//!
//! # Safety
//! A [`Module`] stands for the module that the pass manager lent for the pass's run; every [`Value`] and [`Type`] is
//! obtained from it and used during that run only. LLVM checks no kinds: a method whose documentation names a kind of
//! value is called on that kind alone, and the callers in this crate look at [`Value::opcode`] first.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::ptr;

use llvm_plugin::inkwell::llvm_sys;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::target::{
    LLVMABISizeOfType, LLVMGetModuleDataLayout, LLVMOffsetOfElement, LLVMStoreSizeOfType, LLVMTargetDataRef,
};
pub use llvm_sys::{LLVMAtomicOrdering as Ordering, LLVMAtomicRMWBinOp as Rmw, LLVMOpcode as Opcode};
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMLinkage, LLVMTypeKind};

use crate::pieces::Data;

/// A call of LLVM. One obligation for all: see the head of this file.
macro_rules! llvm {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the handles belong to the module under the pass, and the values are of the kind that the wrapping
        // method's documentation names, which its callers have checked.
        unsafe { $function($($argument),*) }
    };
}

pub(crate) use llvm;

/// How the names of all functions begin that the pass brings along.
pub const PREFIX: &str = "__thermalloc";

/// A value: instruction, constant, function or argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value(LLVMValueRef);

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type(LLVMTypeRef);

/// The module under the pass.
#[derive(Clone, Copy)]
pub struct Module {
    module: LLVMModuleRef,
    data: LLVMTargetDataRef,
}

/// Some text that LLVM owns, with its length.
fn owned_text(text: *const std::ffi::c_char, length: usize) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: LLVM returned `length` bytes at `text`, which live as long as the module.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) }).into_owned()
}

fn terminated_text(text: *const std::ffi::c_char) -> String {
    // SAFETY: LLVM returned a string that ends in a zero byte and lives as long as the module.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A list that LLVM gives as a first element and a step.
fn list<T>(first: *mut T, next: impl Fn(*mut T) -> *mut T) -> Vec<*mut T> {
    std::iter::successors(Some(first).filter(|item| !item.is_null()), |item| {
        Some(next(*item)).filter(|item| !item.is_null())
    })
    .collect()
}

/// A module from its text.
fn parse(context: LLVMContextRef, text: &str) -> Result<LLVMModuleRef, String> {
    let (name, length) = (c"thermalloc".as_ptr(), text.len());
    let buffer = llvm!(LLVMCreateMemoryBufferWithMemoryRangeCopy(text.as_ptr().cast(), length, name));
    let (mut parsed, mut message) = (ptr::null_mut(), ptr::null_mut());
    let parse = llvm_sys::ir_reader::LLVMParseIRInContext;
    if llvm!(parse(context, buffer, &mut parsed, &mut message)) != 0 {
        return Err(terminated_text(message));
    }
    Ok(parsed)
}

impl Module {
    /// # Safety
    /// `module` must be a live module, lent to the caller until after the last use of the result and of every value
    /// obtained through it.
    pub unsafe fn new(module: LLVMModuleRef) -> Module {
        Module { module, data: llvm!(LLVMGetModuleDataLayout(module)) }
    }

    /// LLVM's handle.
    pub fn raw(&self) -> LLVMModuleRef {
        self.module
    }

    /// The path of the source file, as the compiler was given it.
    pub fn source(&self) -> String {
        let mut length = 0;
        let text = llvm!(LLVMGetSourceFileName(self.module, &mut length));
        owned_text(text, length)
    }

    /// The first lines of a text of intermediate code that is to be linked into this module.
    pub fn target_lines(&self) -> String {
        let layout = terminated_text(llvm!(LLVMGetDataLayoutStr(self.module)));
        let triple = terminated_text(llvm!(LLVMGetTarget(self.module)));
        format!("target datalayout = \"{layout}\"\ntarget triple = \"{triple}\"\n")
    }

    /// All functions, declared or defined.
    pub fn functions(&self) -> Vec<Value> {
        let first = llvm!(LLVMGetFirstFunction(self.module));
        list(first, |function| llvm!(LLVMGetNextFunction(function))).into_iter().map(Value).collect()
    }

    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<Value> {
        let name = CString::new(name).ok()?;
        let function = llvm!(LLVMGetNamedFunction(self.module, name.as_ptr()));
        (!function.is_null()).then_some(Value(function))
    }

    /// Declares a function that takes `parameters` and returns an i64, or returns the one of that name.
    pub fn declare(&self, name: &str, parameters: &[Type]) -> Value {
        if let Some(function) = self.function(name) {
            return function;
        }
        let name = CString::new(name).unwrap_or_default();
        let mut types: Vec<LLVMTypeRef> = parameters.iter().map(|parameter| parameter.0).collect();
        let returned = self.int(64).0;
        let signature = llvm!(LLVMFunctionType(returned, types.as_mut_ptr(), types.len() as u32, 0));
        Value(llvm!(LLVMAddFunction(self.module, name.as_ptr(), signature)))
    }

    /// The integer type of that many bits.
    pub fn int(&self, bits: u32) -> Type {
        let context = llvm!(LLVMGetModuleContext(self.module));
        Type(llvm!(LLVMIntTypeInContext(context, bits)))
    }

    /// Links a module given as text into this one, whose functions' names begin with [`PREFIX`]; the error is LLVM's
    /// message.
    ///
    /// The compiler drops the names of local values, but the text is nothing without. So names are allowed for as
    /// long as there are any; those that came with the text are taken off before the context drops names again.
    pub fn link(&self, text: &str) -> Result<(), String> {
        let context = llvm!(LLVMGetModuleContext(self.module));
        let discards = llvm!(LLVMContextShouldDiscardValueNames(context));
        llvm!(LLVMContextSetDiscardValueNames(context, 0));
        let parsed = parse(context, text)?;
        let link = llvm_sys::linker::LLVMLinkModules2;
        if llvm!(link(self.module, parsed)) != 0 {
            return Err("the helper functions cannot be linked in".to_owned());
        }
        let ours = |function: &Value| function.name().starts_with(PREFIX);
        self.functions().into_iter().filter(ours).for_each(Value::forget_names);
        llvm!(LLVMContextSetDiscardValueNames(context, discards));
        Ok(())
    }

    /// Runs LLVM's own passes, named as on `opt`'s command line.
    pub fn run(&self, passes: &str) -> Result<(), String> {
        use llvm_sys::transforms::pass_builder::*;
        let passes = CString::new(passes).map_err(|error| error.to_string())?;
        let options = llvm!(LLVMCreatePassBuilderOptions());
        let error = llvm!(LLVMRunPasses(self.module, passes.as_ptr(), ptr::null_mut(), options));
        llvm!(LLVMDisposePassBuilderOptions(options));
        if error.is_null() {
            return Ok(());
        }
        let get_message = llvm_sys::error::LLVMGetErrorMessage;
        Err(terminated_text(llvm!(get_message(error))))
    }

    /// Bytes from one element of that type to the next.
    pub fn stride(&self, kind: Type) -> u64 {
        llvm!(LLVMABISizeOfType(self.data, kind.0))
    }

    /// Bytes that a store of that type writes.
    pub fn store_size(&self, kind: Type) -> u64 {
        llvm!(LLVMStoreSizeOfType(self.data, kind.0))
    }

    /// The type's parts in memory; none for what is never in memory as such (opaque and target types).
    pub fn data(&self, kind: Type) -> Option<Data> {
        let bytes = || self.store_size(kind);
        Some(match kind.kind() {
            LLVMTypeKind::LLVMIntegerTypeKind | LLVMTypeKind::LLVMPointerTypeKind => Data::Integer(bytes()),
            LLVMTypeKind::LLVMHalfTypeKind
            | LLVMTypeKind::LLVMBFloatTypeKind
            | LLVMTypeKind::LLVMFloatTypeKind
            | LLVMTypeKind::LLVMDoubleTypeKind
            | LLVMTypeKind::LLVMX86_FP80TypeKind
            | LLVMTypeKind::LLVMFP128TypeKind
            | LLVMTypeKind::LLVMX86_MMXTypeKind => Data::Float(bytes()),
            LLVMTypeKind::LLVMVectorTypeKind => Data::Vector(bytes()),
            LLVMTypeKind::LLVMStructTypeKind => {
                let field = |index| Some((self.field_offset(kind, index), self.data(kind.field(index))?));
                let fields = llvm!(LLVMCountStructElementTypes(kind.0));
                Data::Aggregate((0..fields).map(field).collect::<Option<_>>()?)
            }
            LLVMTypeKind::LLVMArrayTypeKind => {
                let (element, length) = (kind.element(), llvm!(LLVMGetArrayLength(kind.0)));
                let (stride, data) = (self.stride(element), self.data(element)?);
                Data::Aggregate((0..u64::from(length)).map(|index| (index * stride, data.clone())).collect())
            }
            _ => return None,
        })
    }

    fn field_offset(&self, kind: Type, index: u32) -> u64 {
        llvm!(LLVMOffsetOfElement(self.data, kind.0, index))
    }

    /// The constant distance that `address`, a `getelementptr` or its constant expression, adds to its operand 0.
    pub fn constant_offset(&self, address: Value) -> Option<i64> {
        let mut kind = Type(llvm!(LLVMGetGEPSourceElementType(address.0)));
        let mut offset = address.operand(1).constant()?.checked_mul(self.stride(kind) as i64)?;
        for index in 2..address.operands() {
            let position = address.operand(index).constant()?;
            if kind.kind() == LLVMTypeKind::LLVMStructTypeKind {
                offset = offset.checked_add(self.field_offset(kind, position as u32) as i64)?;
                kind = kind.field(position as u32);
            } else {
                kind = kind.element();
                offset = offset.checked_add(position.checked_mul(self.stride(kind) as i64)?)?;
            }
        }
        Some(offset)
    }
}

impl Type {
    fn kind(self) -> LLVMTypeKind {
        llvm!(LLVMGetTypeKind(self.0))
    }

    /// LLVM's handle.
    pub fn raw(self) -> LLVMTypeRef {
        self.0
    }

    /// Whether it is a pointer of the ordinary address space.
    pub fn is_plain_pointer(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMPointerTypeKind && llvm!(LLVMGetPointerAddressSpace(self.0)) == 0
    }

    fn field(self, index: u32) -> Type {
        Type(llvm!(LLVMStructGetTypeAtIndex(self.0, index)))
    }

    /// The element type of an array or vector.
    fn element(self) -> Type {
        Type(llvm!(LLVMGetElementType(self.0)))
    }
}

impl Value {
    /// From LLVM's handle.
    pub fn from_raw(value: LLVMValueRef) -> Value {
        Value(value)
    }

    /// LLVM's handle.
    pub fn raw(self) -> LLVMValueRef {
        self.0
    }
}

/// Functions.
impl Value {
    /// Instructions of each block of a function.
    pub fn blocks(self) -> Vec<Vec<Value>> {
        let blocks = list(llvm!(LLVMGetFirstBasicBlock(self.0)), |block| llvm!(LLVMGetNextBasicBlock(block)))
            .into_iter();
        let instructions = |block| {
            list(llvm!(LLVMGetFirstInstruction(block)), |instruction| {
                llvm!(LLVMGetNextInstruction(instruction))
            })
        };
        blocks.map(|block| instructions(block).into_iter().map(Value).collect()).collect()
    }

    /// The name of a function.
    fn name(self) -> String {
        let mut length = 0;
        let text = llvm!(LLVMGetValueName2(self.0, &mut length));
        owned_text(text, length)
    }

    /// Takes the names off the arguments, blocks and instructions of a function.
    fn forget_names(self) {
        let forget = |value: LLVMValueRef| llvm!(LLVMSetValueName2(value, c"".as_ptr(), 0));
        (0..llvm!(LLVMCountParams(self.0))).for_each(|index| forget(llvm!(LLVMGetParam(self.0, index))));
        for block in list(llvm!(LLVMGetFirstBasicBlock(self.0)), |block| llvm!(LLVMGetNextBasicBlock(block)))
        {
            forget(llvm!(LLVMBasicBlockAsValue(block)));
        }
        self.blocks().into_iter().flatten().for_each(|instruction| forget(instruction.0));
    }

    /// Whether a function has a body that this module emits.
    pub fn is_emitted(self) -> bool {
        let linkage = llvm!(LLVMGetLinkage(self.0));
        llvm!(LLVMIsDeclaration(self.0)) == 0 && linkage != LLVMLinkage::LLVMAvailableExternallyLinkage
    }

    /// Makes a function the module's own, so that it may go when nothing calls it.
    pub fn make_internal(self) {
        llvm!(LLVMSetLinkage(self.0, LLVMLinkage::LLVMInternalLinkage));
    }

    /// Whether a function has the attribute of that name.
    pub fn has_attribute(self, name: &str) -> bool {
        self.attribute_at(LLVMAttributeFunctionIndex, name)
    }

    /// Takes an attribute from a function.
    pub fn drop_attribute(self, name: &str) {
        let kind = llvm!(LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()));
        llvm!(LLVMRemoveEnumAttributeAtIndex(self.0, LLVMAttributeFunctionIndex, kind));
    }

    fn attribute_at(self, index: u32, name: &str) -> bool {
        let kind = llvm!(LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()));
        !llvm!(LLVMGetEnumAttributeAtIndex(self.0, index, kind)).is_null()
    }

    /// A function's attribute that is a text, such as `target-features`.
    pub fn text_attribute(self, name: &str) -> String {
        let index = LLVMAttributeFunctionIndex;
        let attribute =
            llvm!(LLVMGetStringAttributeAtIndex(self.0, index, name.as_ptr().cast(), name.len() as u32));
        if attribute.is_null() {
            return String::new();
        }
        let mut length = 0;
        let text = llvm!(LLVMGetStringAttributeValue(attribute, &mut length));
        owned_text(text, length as usize)
    }
}

/// Instructions and constant expressions.
impl Value {
    /// What an instruction or constant expression does; none for other values.
    pub fn opcode(self) -> Option<Opcode> {
        if !llvm!(LLVMIsAInstruction(self.0)).is_null() {
            Some(llvm!(LLVMGetInstructionOpcode(self.0)))
        } else if !llvm!(LLVMIsAConstantExpr(self.0)).is_null() {
            Some(llvm!(LLVMGetConstOpcode(self.0)))
        } else {
            None
        }
    }

    /// The type of any value.
    pub fn kind(self) -> Type {
        Type(llvm!(LLVMTypeOf(self.0)))
    }

    /// The number of operands of an instruction or constant expression.
    pub fn operands(self) -> u32 {
        llvm!(LLVMGetNumOperands(self.0)) as u32
    }

    /// An operand of an instruction or constant expression.
    pub fn operand(self, index: u32) -> Value {
        Value(llvm!(LLVMGetOperand(self.0, index)))
    }

    /// Replaces an operand of an instruction.
    pub fn set_operand(self, index: u32, value: Value) {
        llvm!(LLVMSetOperand(self.0, index, value.0));
    }

    /// The incoming values of a phi.
    pub fn incoming(self) -> Vec<Value> {
        let count = llvm!(LLVMCountIncoming(self.0));
        (0..count).map(|index| Value(llvm!(LLVMGetIncomingValue(self.0, index)))).collect()
    }

    /// Whether a `getelementptr` stays within one object.
    pub fn is_inbounds(self) -> bool {
        llvm!(LLVMIsInBounds(self.0)) != 0
    }

    /// The value of a constant integer of at most 64 bits.
    pub fn constant(self) -> Option<i64> {
        let is_integer = !llvm!(LLVMIsAConstantInt(self.0)).is_null();
        (is_integer && llvm!(LLVMGetIntTypeWidth(self.kind().0)) <= 64)
            .then(|| llvm!(LLVMConstIntGetSExtValue(self.0)))
    }

    /// Whether it is a global variable, a function or an alias.
    pub fn is_global(self) -> bool {
        !llvm!(LLVMIsAGlobalValue(self.0)).is_null()
    }

    /// Whether it is an argument that lies in the caller's argument area.
    pub fn is_byval_argument(self) -> bool {
        if llvm!(LLVMIsAArgument(self.0)).is_null() {
            return false;
        }
        let function = Value(llvm!(LLVMGetParamParent(self.0)));
        (0..llvm!(LLVMCountParams(function.0)))
            .find(|index| llvm!(LLVMGetParam(function.0, *index)) == self.0)
            .is_some_and(|index| function.attribute_at(index + 1, "byval"))
    }

    /// The name of the intrinsic that a call calls.
    pub fn intrinsic(self) -> Option<String> {
        let called = llvm!(LLVMGetCalledValue(self.0));
        if llvm!(LLVMIsAFunction(called)).is_null() || llvm!(LLVMGetIntrinsicID(called)) == 0 {
            return None;
        }
        Some(Value(called).name())
    }

    /// Whether a load, store, atomicrmw or cmpxchg is volatile.
    pub fn is_volatile(self) -> bool {
        llvm!(LLVMGetVolatile(self.0)) != 0
    }

    /// Makes a load, store, atomicrmw or cmpxchg volatile.
    pub fn make_volatile(self) {
        llvm!(LLVMSetVolatile(self.0, 1));
    }

    /// The ordering of a load or store.
    pub fn ordering(self) -> Ordering {
        llvm!(LLVMGetOrdering(self.0))
    }

    /// The operation of an atomicrmw.
    pub fn rmw(self) -> Rmw {
        llvm!(LLVMGetAtomicRMWBinOp(self.0))
    }

    /// Whether anything uses the value of an instruction.
    pub fn is_used(self) -> bool {
        !llvm!(LLVMGetFirstUse(self.0)).is_null()
    }
}
