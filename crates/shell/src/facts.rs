//! What the file system says of the paths a line names, looked up by the caller at the moment of the decision.
//! Plain data: this crate asks by `questions` and never looks itself. Paths are keyed as they are written, joined to
//! the directory they are seen from. A path nobody looked up is not resolved, and what is not resolved is held.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Where a path really leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Real {
    /// No link on the way.
    AsWritten,
    /// A link leads here; also a file of several names, of which this is one.
    Elsewhere(PathBuf),
    /// A loop, a directory that cannot be read, a pattern that may match a link.
    Unresolved,
}

/// The repository git would find from a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repository {
    /// None at all.
    None,
    /// The one the workspace lies in, and git runs at its top, where its `.git` is found before anything else.
    OwnTop,
    /// The one the workspace lies in, from a directory below its top.
    Own,
    /// Another, whose configuration and hooks execute nothing.
    Plain,
    /// A directory shaped like git's own, or a repository whose configuration or hooks may execute something.
    Strange,
}

/// The answers for one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    looked: Looked,
    paths: HashMap<PathBuf, Real>,
    repositories: HashMap<PathBuf, Repository>,
    /// Paths that are there.
    present: BTreeSet<PathBuf>,
    are_too_many: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Looked {
    /// Nobody looked.
    #[default]
    No,
    /// For tests of what is lexical: no path is a link, and git runs at the top of its own repository.
    AsWritten,
    Yes,
}

impl FileFacts {
    /// As if there were no links and no other repositories. For tests, and for lines that are no real call.
    #[must_use]
    pub fn as_written() -> Self {
        Self { looked: Looked::AsWritten, ..Self::default() }
    }

    /// Facts that were looked up.
    #[must_use]
    pub fn looked_up(
        paths: HashMap<PathBuf, Real>,
        repositories: HashMap<PathBuf, Repository>,
        present: BTreeSet<PathBuf>,
    ) -> Self {
        Self { looked: Looked::Yes, paths, repositories, present, are_too_many: false }
    }

    /// There were more paths than are looked up for one call.
    #[must_use]
    pub fn too_many() -> Self {
        Self { are_too_many: true, ..Self::default() }
    }

    #[must_use]
    pub fn are_too_many(&self) -> bool {
        self.are_too_many
    }

    /// Every path that a link leads elsewhere, and where.
    pub fn links(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.paths.iter().filter_map(|(path, real)| match real {
            Real::Elsewhere(real) => Some((path.as_path(), real.as_path())),
            Real::AsWritten | Real::Unresolved => None,
        })
    }

    #[must_use]
    pub fn is_known(&self) -> bool {
        self.looked != Looked::No
    }

    pub(super) fn real(&self, path: &Path) -> &Real {
        match self.looked {
            Looked::AsWritten => &Real::AsWritten,
            Looked::No => &Real::Unresolved,
            Looked::Yes => self.paths.get(path).unwrap_or(&Real::Unresolved),
        }
    }

    pub(super) fn repository(&self, directory: &Path) -> Repository {
        match self.looked {
            Looked::AsWritten => Repository::OwnTop,
            Looked::No => Repository::Strange,
            Looked::Yes => self.repositories.get(directory).copied().unwrap_or(Repository::Strange),
        }
    }

    pub(super) fn is_present(&self, path: &Path) -> bool {
        match self.looked {
            Looked::AsWritten => false,
            Looked::No => true,
            Looked::Yes => self.present.contains(path),
        }
    }
}

/// What is to be looked up for a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Questions {
    /// Paths that may be links; they may hold patterns.
    pub paths: BTreeSet<PathBuf>,
    /// Directories git would run in.
    pub directories: BTreeSet<PathBuf>,
}
