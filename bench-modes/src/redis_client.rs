//! As much of the Redis protocol (RESP2) as it takes to ask and to print the replies.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

/// A connection.
pub struct RedisClient {
    stream: BufReader<TcpStream>,
}

impl RedisClient {
    /// Connects to a server on this machine.
    pub fn connect(port: u16) -> io::Result<Self> {
        Ok(Self { stream: BufReader::new(TcpStream::connect(("127.0.0.1", port))?) })
    }

    /// Makes inline requests, all at once; their replies.
    pub fn ask(&mut self, requests: &[String]) -> io::Result<Vec<String>> {
        let text: String = requests.iter().flat_map(|request| [request, "\r\n"]).collect();
        self.stream.get_mut().write_all(text.as_bytes())?;
        requests.iter().map(|_| reply(&mut self.stream)).collect()
    }

    /// Commands that the server has processed so far, this one not among them.
    pub fn processed(&mut self) -> io::Result<u64> {
        let info = self.ask(&["INFO stats".into()])?.concat();
        let number = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        number
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| io::Error::other("INFO is not understood"))
    }
}

/// One reply, as text: bulk strings as they are, elements of arrays in parentheses.
fn reply(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let line = line.trim_end();
    let number =
        || line[1..].parse::<i64>().map_err(|_| io::Error::other(format!("a reply begins with '{line}'")));
    match line.chars().next() {
        Some('+' | '-' | ':') => Ok(line.to_owned()),
        Some('$') => {
            let Ok(length) = usize::try_from(number()?) else { return Ok("nil".into()) };
            let mut bytes = vec![0; length + 2];
            stream.read_exact(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
        }
        Some('*') => {
            let mut text = String::from("(");
            for _ in 0..number()? {
                let _ = write!(text, "{} ", reply(stream)?);
            }
            Ok(text + ")")
        }
        _ => Err(io::Error::other("the server has closed the connection")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_all_kinds_become_text() {
        let mut stream = &b"+OK\r\n:7\r\n$3\r\na\r\n\r\n*2\r\n$-1\r\n-ERR x\r\n*0\r\n"[..];
        let texts: Vec<String> = (0..5).map(|_| reply(&mut stream).unwrap()).collect();
        assert_eq!(texts, ["+OK", ":7", "a\r\n", "(nil -ERR x )", "()"]);
        assert!(reply(&mut stream).is_err());
    }
}
