//! What the file system says of the paths a line names, looked up by the caller at the moment of the decision.
//! Plain data: this crate asks by `questions` and never looks itself. Paths are keyed as they are written, joined to
//! the directory they are seen from. A path nobody looked up is not resolved, and what is not resolved is held.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Where a path really leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Real {
    /// No link on the way.
    AsWritten,
    /// A link leads here; also a file of several names, of which this is one.
    Elsewhere(PathBuf),
    /// A pattern that matches links, which lead to these.
    Several(Vec<PathBuf>),
    /// A loop, a directory that cannot be read, a pattern with too many matches.
    Unresolved,
}

impl Real {
    /// Every place it leads to that is not the path as written.
    #[must_use]
    pub fn elsewhere(&self) -> &[PathBuf] {
        match self {
            Self::Elsewhere(real) => std::slice::from_ref(real),
            Self::Several(reals) => reals,
            Self::AsWritten | Self::Unresolved => &[],
        }
    }
}

/// What lies below a directory, or the file itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Where the links below it lead.
    pub links: Vec<PathBuf>,
    /// The first path below it that reaches a place whose files are executed.
    pub executed: Option<PathBuf>,
    /// The names directly below it.
    pub names: Vec<String>,
    /// Everything below it was looked at.
    pub is_whole: bool,
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
    /// One with a nested repository that git would enter, whose configuration or hooks may execute something.
    Nested,
    /// One of which it cannot be told whether git would enter a nested repository.
    Unread,
}

/// What git would take into its index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gathered {
    /// Everything below the top of the work tree.
    All,
    /// These paths, seen from the directory git runs in.
    Paths(Vec<PathBuf>),
}

/// The answers for one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    looked: Looked,
    paths: HashMap<PathBuf, Real>,
    repositories: HashMap<PathBuf, Repository>,
    /// Paths that are there.
    present: BTreeSet<PathBuf>,
    trees: HashMap<PathBuf, Tree>,
    /// Paths that the workspace's own git executes, links followed.
    executed: Vec<PathBuf>,
    are_too_many: bool,
}

/// What writing a path changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The path itself.
    Named,
    /// Everything below it, too.
    Below,
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
        Self { looked: Looked::Yes, paths, repositories, present, ..Self::default() }
    }

    /// The same, with the paths that the workspace's own git executes.
    #[must_use]
    pub fn with_executed(mut self, executed: Vec<PathBuf>) -> Self {
        self.executed = executed;
        self
    }

    /// The same facts, with what lies below directories.
    #[must_use]
    pub fn with_trees(mut self, trees: HashMap<PathBuf, Tree>) -> Self {
        self.trees = trees;
        self
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
        self.paths
            .iter()
            .flat_map(|(path, real)| real.elsewhere().iter().map(move |real| (path.as_path(), real.as_path())))
    }

    /// Every path of which it cannot be told where it leads.
    pub fn unresolved(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(|(_, real)| **real == Real::Unresolved).map(|(path, _)| path.as_path())
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

    /// What lies below a path; `None` where it was not looked up.
    pub(super) fn tree(&self, path: &Path) -> Option<Cow<'_, Tree>> {
        match self.looked {
            Looked::AsWritten => Some(Cow::Owned(Tree { is_whole: true, ..Tree::default() })),
            Looked::No => None,
            Looked::Yes => self.trees.get(path).map(Cow::Borrowed),
        }
    }

    /// The path that the workspace's own git executes and that writing this one would change. With `Below`, also where
    /// it lies below the written one.
    pub(super) fn named_by_git(&self, path: &Path, reach: Reach) -> Option<&Path> {
        let is_it = |place: &&PathBuf| path.starts_with(place) || (reach == Reach::Below && place.starts_with(path));
        self.executed.iter().find(is_it).map(PathBuf::as_path)
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
    /// Those of them in which git may take nested repositories into its index.
    pub gathering: BTreeMap<PathBuf, Vec<Gathered>>,
    /// Directories of which everything below is read or written.
    pub trees: BTreeSet<PathBuf>,
}
