//! Writes tar archives (ustar): just enough for image layers and image layouts.

use std::io::{Read, Write};

use crate::error::{Attempt, Result};

/// The unit of a tar archive.
const BLOCK: u64 = 512;

/// An archive being written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Starts an archive.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Adds a directory.
    pub fn directory(&mut self, name: &str) -> Result<()> {
        self.header(&format!("{name}/"), 0o755, 0, b'5')
    }

    /// Adds a file of the given size; `content` must hold exactly as much.
    pub fn file(&mut self, name: &str, mode: u32, size: u64, content: impl Read) -> Result<()> {
        self.header(name, mode, size, b'0')?;
        let copied = std::io::copy(&mut content.take(size), &mut self.out).attempt(|| archive(name))?;
        if copied != size {
            let short = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(short).attempt(|| archive(name));
        }
        let padding = copied.next_multiple_of(BLOCK) - copied;
        std::io::copy(&mut std::io::repeat(0).take(padding), &mut self.out)
            .attempt(|| archive(name))
            .map(drop)
    }

    /// Ends the archive and returns what it was written to.
    pub fn finish(mut self) -> Result<W> {
        self.out.write_all(&[0; 1024]).attempt(|| archive("the end"))?;
        self.out.flush().attempt(|| archive("the end"))?;
        Ok(self.out)
    }

    fn header(&mut self, name: &str, mode: u32, size: u64, kind: u8) -> Result<()> {
        let header = header(name, mode, size, kind).attempt(|| archive(name))?;
        self.out.write_all(&header).attempt(|| archive(name))
    }
}

fn archive(name: &str) -> String {
    format!("write {name} to an archive")
}

/// Owner root, time 0: the same content gives the same archive.
fn header(name: &str, mode: u32, size: u64, kind: u8) -> std::io::Result<Vec<u8>> {
    let mut header = Vec::with_capacity(512);
    let mut field = |text: String, width: usize| {
        if text.len() > width {
            return Err(std::io::Error::other(format!("{text} is longer than {width}")));
        }
        header.extend_from_slice(text.as_bytes());
        header.resize(header.len() + width - text.len(), 0);
        Ok(())
    };
    field(name.to_owned(), 100)?;
    field(format!("{mode:07o}"), 8)?;
    field(format!("{:07o}", 0), 8)?;
    field(format!("{:07o}", 0), 8)?;
    field(format!("{size:011o}"), 12)?;
    field(format!("{:011o}", 0), 12)?;
    field(" ".repeat(8), 8)?;
    field(char::from(kind).to_string(), 1)?;
    field(String::new(), 100)?;
    field("ustar".into(), 6)?;
    field("00".into(), 2)?;
    field(String::new(), 512 - 265)?;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header.splice(148..156, format!("{sum:06o}\0 ").into_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_sums_up_and_fills_its_block() {
        let header = header("bin/x", 0o755, 5, b'0').unwrap();
        assert_eq!(header.len(), 512);
        let mut blank = header.clone();
        blank[148..156].fill(b' ');
        let sum: u32 = blank.iter().map(|byte| u32::from(*byte)).sum();
        assert_eq!(&header[148..154], format!("{sum:06o}").as_bytes());
        assert_eq!(&header[257..262], b"ustar");
    }

    #[test]
    fn a_file_is_padded_and_must_have_its_size() {
        let mut writer = Writer::new(Vec::new());
        writer.file("x", 0o644, 5, &b"hello"[..]).unwrap();
        assert_eq!(writer.finish().unwrap().len(), 512 + 512 + 1024);
        assert!(Writer::new(Vec::new()).file("x", 0o644, 6, &b"hello"[..]).is_err());
    }
}
