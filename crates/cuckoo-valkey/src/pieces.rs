//! Snapshots in pieces, for the server's files and for `CF.SCANDUMP`.

use std::io::{self, Read, Write};

/// A writer that cuts its input into pieces of equal size. The last piece may be shorter.
pub(crate) struct Pieces<F: FnMut(&[u8])> {
    piece: Vec<u8>,
    size: usize,
    put: F,
}

impl<F: FnMut(&[u8])> Pieces<F> {
    pub(crate) fn new(size: usize, put: F) -> Self {
        Pieces { piece: Vec::new(), size, put }
    }

    /// Emits the last piece.
    pub(crate) fn end(mut self) {
        if !self.piece.is_empty() {
            (self.put)(&self.piece);
        }
    }
}

impl<F: FnMut(&[u8])> Write for Pieces<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.size - self.piece.len());
        self.piece.try_reserve(taken).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == self.size {
            (self.put)(&self.piece);
            self.piece.clear();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer that keeps one part of its input, and fails once it has it.
pub(crate) struct Part {
    skipped: usize,
    left: usize,
    part: Vec<u8>,
}

impl Part {
    /// Keeps up to `len` bytes from the byte `from` on.
    pub(crate) fn new(from: usize, len: usize) -> Self {
        Part { skipped: from, left: len, part: Vec::new() }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.left == 0
    }

    pub(crate) fn end(self) -> Vec<u8> {
        self.part
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_complete() {
            return Err(io::Error::other("the part is complete"));
        }
        if self.skipped > 0 {
            let skipped = self.skipped.min(bytes.len());
            self.skipped -= skipped;
            return Ok(skipped);
        }
        let taken = bytes.len().min(self.left);
        self.part.try_reserve(taken).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.part.extend_from_slice(&bytes[..taken]);
        self.left -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader over consecutive pieces.
pub(crate) struct Joined<N, B> {
    next: N,
    piece: Option<B>,
    at: usize,
}

impl<B: AsRef<[u8]>, N: FnMut() -> Option<B>> Joined<N, B> {
    pub(crate) fn new(next: N) -> Self {
        Joined { next, piece: None, at: 0 }
    }
}

impl<B: AsRef<[u8]>, N: FnMut() -> Option<B>> Read for Joined<N, B> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.piece.as_ref().map_or(&[][..], |piece| &piece.as_ref()[self.at..]);
            let taken = left.len().min(to.len());
            if taken > 0 || to.is_empty() {
                to[..taken].copy_from_slice(&left[..taken]);
                self.at += taken;
                return Ok(taken);
            }
            (self.piece, self.at) = ((self.next)(), 0);
            if self.piece.is_none() {
                return Ok(0);
            }
        }
    }
}

/// The error for bytes that are not a complete filter.
pub(crate) fn damaged(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
