//! SVG files, and the same pictures as PNG.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use std::fs;
use std::path::Path;

/// Pixels of the PNG for one unit of the SVG.
const SCALE: f32 = 2.0;
/// Where `sans-serif` is not configured.
const FALLBACK_FONT: &str = "DejaVu Sans";

/// Writes `path` (ending in .svg) and the PNG beside it.
pub fn write(path: &Path, svg: &str) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("cannot write {}: {e}", path.display());
    fs::write(path, svg).map_err(|e| failed(&e))?;
    let png = render(svg).map_err(|e| failed(&e))?;
    fs::write(path.with_extension("png"), png).map_err(|e| failed(&e))
}

fn render(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    if fonts.is_empty() {
        eprintln!("no fonts on this machine: the PNG has no words (install fonts-dejavu-core)");
    }
    fonts.set_sans_serif_family(FALLBACK_FONT);
    let tree = Tree::from_str(svg, &options).map_err(|e| e.to_string())?;
    let size = tree.size().to_int_size();
    let side = |length: u32| (length as f32 * SCALE) as u32;
    let mut pixels = Pixmap::new(side(size.width()), side(size.height())).ok_or("no size")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn a_picture_becomes_a_png_of_twice_its_size() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"20\">\
                   <rect width=\"30\" height=\"20\" fill=\"red\"/></svg>";
        let png = render(svg).unwrap();
        assert_eq!(&png[1..4], b"PNG");
        assert_eq!(png[16..24], [0, 0, 0, 60, 0, 0, 0, 40]);
        assert!(render("<svg").is_err());
    }
}
