//! Frames and modules of several reports, each once. The same code has the same build id (or path, without one) and offset; `ip`
//! and `base`, which differ between processes, are those of the first report that has it. With `by_name`, code with the same
//! functions, files and lines is the same too.

use crate::symbols::{Function, Stacks};
use std::collections::HashMap;
use thermalloc_format::{Frame, Module, Name, Report, Site};

/// Collects code.
pub struct Code {
    by_name: bool,
    frames: Vec<Frame>,
    names: Vec<Vec<Name>>,
    modules: Vec<Module>,
    frame_ids: HashMap<FrameKey, u32>,
    module_ids: HashMap<String, u32>,
    reports: u32,
}

/// What makes two frames the same.
#[derive(PartialEq, Eq, Hash)]
enum FrameKey {
    Named(Vec<(String, String, u32)>),
    Place {
        module: u32,
        offset: u64,
    },
    /// Code of no file is one process's own.
    Address {
        report: u32,
        ip: u64,
    },
}

/// New indices of one report's frames; `None`: there was no such frame to begin with.
pub struct FrameIds(Vec<u32>);

impl FrameIds {
    /// The site's frames by their new indices.
    pub fn of(&self, site: &Site) -> Vec<u32> {
        site.frames.iter().filter_map(|&index| self.0.get(index as usize).copied()).collect()
    }
}

impl Code {
    /// Empty.
    pub fn new(by_name: bool) -> Self {
        Self {
            by_name,
            frames: Vec::new(),
            names: Vec::new(),
            modules: Vec::new(),
            frame_ids: HashMap::new(),
            module_ids: HashMap::new(),
            reports: 0,
        }
    }

    /// Adds a report's frames and modules.
    pub fn add<H>(&mut self, report: &Report<H>, stacks: &mut Stacks<'_>) -> FrameIds {
        let modules: Vec<u32> = report.modules.iter().map(|module| self.module(module)).collect();
        let indices = 0..u32::try_from(report.frames.len()).unwrap_or(u32::MAX);
        let ids = indices.zip(&report.frames).map(|(index, frame)| {
            let module = frame.module.and_then(|module| modules.get(module as usize).copied());
            self.frame(frame, module, stacks.frame(index))
        });
        let ids = FrameIds(ids.collect());
        self.reports += 1;
        ids
    }

    fn module(&mut self, module: &Module) -> u32 {
        let key = if module.build_id.is_empty() { &module.path } else { &module.build_id };
        let modules = &mut self.modules;
        *self.module_ids.entry(key.clone()).or_insert_with(|| {
            modules.push(module.clone());
            (modules.len() - 1) as u32
        })
    }

    fn frame(&mut self, frame: &Frame, module: Option<u32>, functions: &[Function]) -> u32 {
        let names = names(functions);
        let key = match module {
            _ if self.by_name && !names.is_empty() => FrameKey::Named(
                names.iter().map(|name| (name.function.clone(), name.file.clone(), name.line)).collect(),
            ),
            Some(module) => FrameKey::Place { module, offset: frame.offset },
            None => FrameKey::Address { report: self.reports, ip: frame.ip },
        };
        let next = self.frames.len() as u32;
        let id = *self.frame_ids.entry(key).or_insert(next);
        if id == next {
            self.frames.push(Frame { module, ..frame.clone() });
            self.names.push(names);
        }
        id
    }

    /// Hands over all of it.
    pub fn fill(self, report: &mut Report) {
        report.frames = self.frames;
        report.modules = self.modules;
        report.names = self.names;
    }
}

/// Names that are known, all or none.
fn names(functions: &[Function]) -> Vec<Name> {
    if !functions.iter().all(|function| function.known) {
        return Vec::new();
    }
    let name = |function: &Function| Name {
        function: function.name.clone(),
        file: function.file.clone(),
        line: function.line,
    };
    functions.iter().map(name).collect()
}
