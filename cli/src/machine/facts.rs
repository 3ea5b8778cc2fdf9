//! What the kernel and the CPU say about themselves.

use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::fs;

/// Contents of a one-line file such as those under /proc/sys.
pub fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The value of `key` in a file of `key: value` lines.
pub fn field(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

/// Protection keys as CPUID leaf 7 has them.
#[derive(Clone, Copy)]
pub struct ProtectionKeys {
    /// The CPU has them (ECX bit 3).
    pub cpu: bool,
    /// The kernel has switched them on (ECX bit 4).
    pub kernel: bool,
}

/// Asks the CPU.
pub fn protection_keys() -> ProtectionKeys {
    let ecx = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ecx } else { 0 };
    ProtectionKeys { cpu: ecx & 1 << 3 != 0, kernel: ecx & 1 << 4 != 0 }
}

/// Major and minor number of a kernel release such as `6.1.0-18-amd64`.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The word in brackets of a file such as `always [madvise] never`.
pub fn selected(text: &str) -> &str {
    let selected = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    selected.map_or(text, |(word, _)| word)
}

/// The soft limit of address space in bytes; `None`: unlimited.
pub fn address_space_limit() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find(|line| line.starts_with("Max address space"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases() {
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("5.11"), Some((5, 11)));
        assert_eq!(version("6.18-rc1"), Some((6, 18)));
        assert_eq!(version("weird"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn selected_words() {
        assert_eq!(selected("always [madvise] never"), "madvise");
        assert_eq!(selected("plain"), "plain");
    }
}
