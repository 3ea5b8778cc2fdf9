//! What `-fpass-plugin` loads: registers the pass at the end of the pipeline, at every level of optimisation.
//!
//! # Safety
//! LLVM finds the plugin by the one symbol exported here, whose layout is `llvm-plugin`'s; what LLVM hands to the
//! callbacks lives until they return.
#![allow(unsafe_code)]

use std::ffi::c_void;

use llvm_plugin::inkwell::module::Module;
use llvm_plugin::{
    LlvmModulePass, ModuleAnalysisManager, PassBuilder, PassPluginLibraryInfo, PreservedAnalyses,
};

use crate::ir;
use crate::options::Options;
use crate::rewrite::rewrite;

struct Instrument(Options);

impl LlvmModulePass for Instrument {
    fn run_pass(&self, module: &mut Module<'_>, _: &ModuleAnalysisManager) -> PreservedAnalyses {
        // SAFETY: the pass manager lends the module until this function returns, and nothing made from it stays.
        let module = unsafe { ir::Module::new(module.as_mut_ptr()) };
        if !self.0.selects(&module.source()) {
            return PreservedAnalyses::All;
        }
        match rewrite(module, self.0.shape) {
            Ok(true) => PreservedAnalyses::None,
            Ok(false) => PreservedAnalyses::None,
            Err(message) => fail(&message),
        }
    }
}

/// An object file with half of its accesses counted would be worse than none.
fn fail(message: &str) -> ! {
    eprintln!("thermalloc-cc: {message}");
    std::process::exit(1)
}

extern "C" fn register(builder: *mut c_void) {
    let options = Options::from_env().unwrap_or_else(|bad| fail(&bad.to_string()));
    // SAFETY: LLVM calls this with its pass builder.
    let mut builder = unsafe { PassBuilder::from_raw(builder) };
    builder.add_optimizer_last_ep_callback(move |passes, _| passes.add_pass(Instrument(options.clone())));
}

/// The entry that LLVM looks for.
// SAFETY: no other object in the compiler's process defines this name for itself to call.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn llvmGetPassPluginInfo() -> PassPluginLibraryInfo {
    PassPluginLibraryInfo {
        api_version: llvm_plugin::get_llvm_plugin_api_version__(),
        plugin_name: c"thermalloc-instrument".as_ptr().cast(),
        plugin_version: c"1".as_ptr().cast(),
        plugin_registrar: register,
    }
}
