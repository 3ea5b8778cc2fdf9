//! Names of C++ and Rust functions as their authors wrote them, without hashes, parameters and return types.

use cpp_demangle::{DemangleOptions, Symbol};

/// The readable name; the given one if it is not mangled.
pub fn demangle(name: &str) -> String {
    // A version such as `@GLIBC_2.2.5` is no part of the name.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    if let Ok(readable) = rustc_demangle::try_demangle(name) {
        return format!("{readable:#}");
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let readable = Symbol::new(name).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok());
    readable.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("malloc@GLIBC_2.2.5"), "malloc");
        assert_eq!(demangle("_Znwm"), "operator new");
        assert_eq!(demangle("_ZN5store3Map6insertEi"), "store::Map::insert");
        assert_eq!(demangle("_ZN5store6insert17h0123456789abcdefE"), "store::insert");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
    }

    proptest! {
        #[test]
        fn any_name_will_do(name in "(_Z|_R|_ZN)?[A-Za-z0-9_$.@]{0,60}") {
            demangle(&name);
        }
    }
}
