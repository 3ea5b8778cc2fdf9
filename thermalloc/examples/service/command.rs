//! One line of memcached's text protocol as a command. Pure.
//!
//! Errors are the lines that memcached answers, and so are its oddities: a superfluous last word is ignored where
//! `noreply` could stand.

/// Longest key, in bytes.
const MAX_KEY: usize = 250;
const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
const ERROR: &str = "ERROR";

/// What a storage command requires of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing (`set`).
    Always,
    /// Not stored yet (`add`).
    Absent,
    /// Stored already (`replace`).
    Present,
    /// Stored, and not changed since `gets` gave this number (`cas`).
    Unchanged(u64),
}

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    Get { keys: Vec<&'a [u8]>, with_cas: bool },
    Store { condition: Condition, key: &'a [u8], flags: u32, expiry: i64, size: usize },
    Delete { key: &'a [u8] },
    Add { key: &'a [u8], delta: u64, negative: bool },
    Touch { key: &'a [u8], expiry: i64 },
    FlushAll { delay: i64 },
    Stats { topic: Option<&'a [u8]> },
    Version,
    Verbosity,
    Quit,
    Shutdown,
}

/// A line's command or the error that answers it, and whether the client wants no answer.
pub struct Line<'a> {
    pub command: Result<Command<'a>, &'static str>,
    pub noreply: bool,
}

/// Parses a line without its end.
pub fn parse(line: &[u8]) -> Line<'_> {
    let words: Vec<&[u8]> = line.split(|c| *c == b' ').filter(|word| !word.is_empty()).collect();
    let Some((name, args)) = words.split_first() else { return Line { command: Err(ERROR), noreply: false } };
    let (command, may_be_silent) = match *name {
        b"get" => (get(args, false), false),
        b"gets" => (get(args, true), false),
        b"set" => (store(args, Condition::Always), true),
        b"add" => (store(args, Condition::Absent), true),
        b"replace" => (store(args, Condition::Present), true),
        b"cas" => (compare_and_store(args), true),
        b"delete" => (delete(args), true),
        b"incr" => (add(args, false), true),
        b"decr" => (add(args, true), true),
        b"touch" => (touch(args), true),
        b"flush_all" => (flush_all(args), true),
        b"verbosity" => (if args.is_empty() { Err(ERROR) } else { Ok(Command::Verbosity) }, true),
        b"stats" => (Ok(Command::Stats { topic: args.first().copied() }), false),
        b"version" => (Ok(Command::Version), false),
        b"quit" => (Ok(Command::Quit), false),
        b"shutdown" => (Ok(Command::Shutdown), false),
        _ => (Err(ERROR), false),
    };
    let noreply = may_be_silent && command != Err(ERROR) && args.last() == Some(&&b"noreply"[..]);
    Line { command, noreply }
}

type Parsed<'a> = Result<Command<'a>, &'static str>;

fn key(word: &[u8]) -> Result<&[u8], &'static str> {
    if word.len() <= MAX_KEY { Ok(word) } else { Err(BAD_FORMAT) }
}

fn number<T: std::str::FromStr>(word: &[u8], error: &'static str) -> Result<T, &'static str> {
    std::str::from_utf8(word).ok().and_then(|text| text.parse().ok()).ok_or(error)
}

fn get<'a>(args: &[&'a [u8]], with_cas: bool) -> Parsed<'a> {
    if args.is_empty() {
        return Err(ERROR);
    }
    let keys = args.iter().map(|word| key(word)).collect::<Result<_, _>>()?;
    Ok(Command::Get { keys, with_cas })
}

fn store<'a>(args: &[&'a [u8]], condition: Condition) -> Parsed<'a> {
    let [name, flags, expiry, size] = match args {
        [name, flags, expiry, size] | [name, flags, expiry, size, _] => [*name, flags, expiry, size],
        _ => return Err(ERROR),
    };
    let size: i32 = number(size, BAD_FORMAT)?;
    Ok(Command::Store {
        condition,
        key: key(name)?,
        flags: number(flags, BAD_FORMAT)?,
        expiry: number::<i32>(expiry, BAD_FORMAT)?.into(),
        size: usize::try_from(size).map_err(|_| BAD_FORMAT)?,
    })
}

fn compare_and_store<'a>(args: &[&'a [u8]]) -> Parsed<'a> {
    let [name, flags, expiry, size, unique] = match args {
        [name, flags, expiry, size, unique] | [name, flags, expiry, size, unique, _] => {
            [*name, flags, expiry, size, unique]
        }
        _ => return Err(ERROR),
    };
    store(&[name, flags, expiry, size], Condition::Unchanged(number(unique, BAD_FORMAT)?))
}

fn delete<'a>(args: &[&'a [u8]]) -> Parsed<'a> {
    const USAGE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
    match args {
        [name] | [name, b"0" | b"noreply"] | [name, b"0", b"noreply"] => {
            Ok(Command::Delete { key: key(name)? })
        }
        [_, _] | [_, _, _] => Err(USAGE),
        _ => Err(ERROR),
    }
}

fn add<'a>(args: &[&'a [u8]], negative: bool) -> Parsed<'a> {
    let ([name, delta] | [name, delta, _]) = args else { return Err(ERROR) };
    let key = key(name)?;
    Ok(Command::Add { key, delta: number(delta, "CLIENT_ERROR invalid numeric delta argument")?, negative })
}

fn touch<'a>(args: &[&'a [u8]]) -> Parsed<'a> {
    let ([name, expiry] | [name, expiry, _]) = args else { return Err(ERROR) };
    let key = key(name)?;
    Ok(Command::Touch { key, expiry: number::<i32>(expiry, "CLIENT_ERROR invalid exptime argument")?.into() })
}

fn flush_all<'a>(args: &[&'a [u8]]) -> Parsed<'a> {
    match args {
        [] | [b"noreply"] => Ok(Command::FlushAll { delay: 0 }),
        [delay] | [delay, _] => Ok(Command::FlushAll { delay: number::<i32>(delay, BAD_FORMAT)?.into() }),
        _ => Err(ERROR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_storage_line_is_taken_apart() {
        let line = parse(b"cas  k 5 -1 10 77 noreply");
        let condition = Condition::Unchanged(77);
        let expected = Command::Store { condition, key: b"k", flags: 5, expiry: -1, size: 10 };
        assert_eq!(line.command, Ok(expected));
        assert!(line.noreply);
    }

    #[test]
    fn errors_are_memcacheds() {
        let long = [&b"get "[..], &[b'k'; 251]].concat();
        for (line, error) in [
            (&b""[..], ERROR),
            (b"get", ERROR),
            (b"set k 0 0", ERROR),
            (b"set k x 0 1", BAD_FORMAT),
            (b"set k 0 0 -1", BAD_FORMAT),
            (b"incr k x", "CLIENT_ERROR invalid numeric delta argument"),
            (&long, BAD_FORMAT),
        ] {
            assert_eq!(parse(line).command, Err(error), "{}", line.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..100), words in "(set|incr|cas|get)( [0-9a-z-]{0,9}){0,7}") {
            parse(&line);
            parse(words.as_bytes());
        }
    }
}
