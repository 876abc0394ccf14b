//! A PostgreSQL of its own for a test: made, started on a free port, and gone when the test is.
//!
//! Takes the programs of an installed PostgreSQL; gives an address. Says what to install where there is none: tests
//! that need it fail then.

use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const READY: &str = "database system is ready to accept connections";
/// Somebody else may take a free port before the server does.
const ATTEMPTS: usize = 5;

/// A running server.
#[derive(Debug)]
pub struct Cluster {
    server: Child,
    port: u16,
    programs: PathBuf,
    directory: tempfile::TempDir,
}

impl Cluster {
    /// Makes and starts one.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start.
    pub fn start() -> io::Result<Self> {
        let programs = programs()?;
        let directory = tempfile::Builder::new().prefix("toolwarden-postgres-").tempdir()?;
        if let Some(user) = other_user()? {
            chown(directory.path(), Some(user), None)?;
        }
        let data = directory.path().join("data");
        let mut making = as_postgres(&programs.join("initdb"))?;
        making.args(["--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8", "--username=warden", "--pgdata"]);
        let made = making.arg(&data).current_dir(directory.path()).output()?;
        if !made.status.success() {
            return Err(io::Error::other(format!("initdb: {}", String::from_utf8_lossy(&made.stderr))));
        }
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            match serve(&programs, directory.path(), port)? {
                Ok(server) => return Ok(Self { server, port, programs, directory }),
                Err(lines) => said = lines,
            }
        }
        Err(io::Error::other(format!("postgres does not start: {said}")))
    }

    /// The address of a database that exists.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://warden@127.0.0.1:{}/postgres", self.port)
    }

    /// Ends the server at once, as when its machine is lost.
    ///
    /// # Errors
    /// It cannot be ended.
    pub fn stop(&mut self) -> io::Result<()> {
        stop(&mut self.server)
    }

    /// Starts it again at the same address.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self) -> io::Result<()> {
        self.stop()?;
        self.server = serve(&self.programs, self.directory.path(), self.port)?.map_err(io::Error::other)?;
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing can be done about one that does not end; its directory goes all the same.
        let _ = self.stop();
    }
}

/// The server, once it is ready; or what it said before it ended.
fn serve(programs: &Path, directory: &Path, port: u16) -> io::Result<Result<Child, String>> {
    let mut serving = as_postgres(&programs.join("postgres"))?;
    serving.arg("-D").arg(directory.join("data")).arg("-k").arg(directory).args(["-p", &port.to_string()]);
    // Nothing here outlives a crash of the machine, so nothing waits for its disk.
    for setting in [
        "listen_addresses=127.0.0.1",
        "fsync=off",
        "full_page_writes=off",
        "shared_buffers=16MB",
        "max_connections=200",
    ] {
        serving.args(["-c", setting]);
    }
    let mut server = serving.current_dir(directory).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let Some(errors) = server.stderr.take() else { return Err(io::Error::other("postgres has no stderr")) };
    let mut lines = BufReader::new(errors).lines();
    let mut said = String::new();
    for line in lines.by_ref() {
        let line = line?;
        if line.contains(READY) {
            // Read on, so that the server never waits for us.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(Ok(server));
        }
        said.push_str(&line);
        said.push('\n');
    }
    server.wait()?;
    Ok(Err(said))
}

fn stop(server: &mut Child) -> io::Result<()> {
    if server.try_wait()?.is_some() {
        return Ok(());
    }
    // SIGQUIT: end at once, without asking anybody.
    if let Some(process) = i32::try_from(server.id()).ok().and_then(Pid::from_raw) {
        kill_process(process, Signal::QUIT)?;
    }
    server.wait().map(drop)
}

/// A program as a user that PostgreSQL accepts, which root is not; ended when this process is.
fn as_postgres(program: &Path) -> io::Result<Command> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if let Some(user) = other_user()? {
        command.args(["--reuid", &user.to_string(), "--clear-groups"]);
    }
    command.arg(program);
    Ok(command)
}

/// Whom to be where we are root.
fn other_user() -> io::Result<Option<u32>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let number = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        line.split(':').nth(2)?.parse().ok()
    };
    let found = number("postgres").or_else(|| number("nobody"));
    found.map(Some).ok_or_else(|| io::Error::other("there is no user `postgres` or `nobody` to run PostgreSQL as"))
}

/// Where the programs are: the newest version of Debian's places, else the usual ones.
fn programs() -> io::Result<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).filter_map(|path| Some((number(&path)?, path))).max();
    let debian = newest.map(|(_, path)| path.join("bin"));
    let others = ["/usr/bin", "/usr/local/bin", "/usr/local/pgsql/bin"].map(PathBuf::from);
    let mut places = debian.into_iter().chain(others);
    places.find(|place| place.join("initdb").is_file() && place.join("postgres").is_file()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "PostgreSQL is not installed; on Debian or Ubuntu, as root: apt-get install postgresql",
        )
    })
}
