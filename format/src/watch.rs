//! Which objects are watched: the specification of `--watch`, `THERMALLOC_WATCH` and `config.watch`.

use std::fmt;

/// Which objects are watched: all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Smallest requested size in bytes.
    pub min_size: Option<usize>,
    /// Largest requested size in bytes.
    pub max_size: Option<usize>,
    /// One object in this many, by allocation order.
    pub sample: Option<u64>,
    /// Base name of the module that calls the allocator.
    pub module: Option<String>,
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = [
            self.min_size.map(|size| format!("size>={size}")),
            self.max_size.map(|size| format!("size<={size}")),
            self.sample.map(|n| format!("sample=1/{n}")),
            self.module.as_ref().map(|name| format!("module={name}")),
        ];
        f.write_str(&terms.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

impl Watch {
    /// Whether every object is watched.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Parses `size>=N`, `size<=N`, `sample=1/N`, `module=NAME`, joined by commas. N of a size takes K, M or G (powers of
    /// 1024). An empty text watches every object.
    ///
    /// # Errors
    /// One line that names the term that is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut watch = Self::default();
        if text.trim().is_empty() {
            return Ok(watch);
        }
        for term in text.split(',').map(str::trim) {
            if let Some(size) = term.strip_prefix("size>=") {
                watch.min_size = Some(parse_size(size)?);
            } else if let Some(size) = term.strip_prefix("size<=") {
                watch.max_size = Some(parse_size(size)?);
            } else if let Some(n) = term.strip_prefix("sample=1/") {
                let n = n.parse().ok().filter(|&n: &u64| n > 0);
                watch.sample =
                    Some(n.ok_or_else(|| format!("'{term}': N in sample=1/N is a number from 1"))?);
            } else if let Some(name) = term.strip_prefix("module=").filter(|name| !name.is_empty()) {
                watch.module = Some(name.to_owned());
            } else {
                return Err(format!("'{term}' is none of size>=N, size<=N, sample=1/N, module=NAME"));
            }
        }
        Ok(watch)
    }
}

fn parse_size(text: &str) -> Result<usize, String> {
    let no_size = || format!("'{text}' is no size (bytes, or with K, M, G)");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" => 0,
        "K" | "KIB" => 10,
        "M" | "MIB" => 20,
        "G" | "GIB" => 30,
        _ => return Err(no_size()),
    };
    let number: usize = digits.parse().map_err(|_| no_size())?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("'{text}' is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_is_understood_and_comes_back() {
        let watch = Watch::parse("size>=4K, size<=1MiB,sample=1/10,module=libfoo.so").unwrap();
        assert_eq!((watch.min_size, watch.max_size), (Some(4096), Some(1 << 20)));
        assert_eq!((watch.sample, watch.module.as_deref()), (Some(10), Some("libfoo.so")));
        assert_eq!(Watch::parse(&watch.to_string()), Ok(watch));
        assert!(Watch::parse("").unwrap().is_everything());
    }

    #[test]
    fn terms_that_are_not_understood_are_refused() {
        for bad in [
            "size>64",
            "size>=",
            "size>=-1",
            "size>=4X",
            "size>=K",
            "sample=2/3",
            "sample=1/0",
            "module=",
            "size>=1,",
            ",",
            "x",
            "size>=99999999999999999999",
            "size>=99999999999999G",
        ] {
            assert!(Watch::parse(bad).is_err(), "{bad}");
        }
    }
}
