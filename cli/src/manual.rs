//! Man pages and completion scripts, both made from the definition of the command line.

use crate::failure::Failure;
use crate::options::{CompletionsOptions, ManOptions, Options};
use crate::output;
use clap::CommandFactory;
use clap_mangen::Man;
use std::fs;
use std::path::Path;

/// Writes the main page to stdout, or all pages into a directory.
pub fn man(options: &ManOptions) -> Result<u8, Failure> {
    let Some(directory) = &options.output else {
        output::write(None, |sink| Ok(sink.write_all(&page(Options::command()))?))?;
        return Ok(0);
    };
    fs::create_dir_all(directory).map_err(|error| {
        Failure::own(format!("{}: cannot be created: {error}; use another directory", directory.display()))
    })?;
    for (name, page) in pages() {
        write(&directory.join(format!("{name}.1")), &page)?;
    }
    Ok(0)
}

/// Writes the script to stdout.
pub fn completions(options: &CompletionsOptions) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Options::command(), "thermalloc", &mut script);
    output::write(None, |sink| Ok(sink.write_all(&script)?))?;
    Ok(0)
}

/// The main page and one for each command, by name.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut command = Options::command();
    command.build();
    let main = (command.get_name().to_owned(), page(Options::command()));
    let visible =
        command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    let others = visible.map(|one| {
        let name = format!("thermalloc-{}", one.get_name());
        (name.clone(), page(one.clone().name(name)))
    });
    std::iter::once(main).chain(others).collect()
}

fn page(command: clap::Command) -> Vec<u8> {
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = Man::new(command).render(&mut page);
    // What follows the options is examples, which have a section of their own.
    String::from_utf8_lossy(&page).replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n").into_bytes()
}

fn write(path: &Path, page: &[u8]) -> Result<(), Failure> {
    output::write(Some(path), |sink| Ok(sink.write_all(page)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let pages = pages();
        let page = |name: &str| {
            let (_, page) = pages.iter().find(|(other, _)| other == name).unwrap();
            String::from_utf8(page.clone()).unwrap()
        };
        assert!(page("thermalloc").contains("thermalloc\\-report"));
        assert!(page("thermalloc-run").contains("\\-\\-interval"));
        assert!(page("thermalloc-report").contains(".SH EXAMPLES\n"));
        assert!(page("thermalloc-top").contains("\\-\\-pid"));
    }
}
