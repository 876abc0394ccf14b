//! What stands between the load and the server: nothing, nginx, Toolwarden. Ended when dropped.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpStream;

/// A process that ends with us.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Asked, not killed: the workers of a killed nginx would stay.
        let asked = Command::new("kill").arg(self.0.id().to_string()).status().is_ok_and(|status| status.success());
        if !asked {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Result<Running> {
    let what = format!("{:?}", command.get_program());
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Ok(Running(child.with_context(|| format!("cannot start {what}"))?))
}

pub fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

pub async fn answers(port: u16) -> Result<()> {
    for _ in 0..500 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    anyhow::bail!("nobody listens on port {port}")
}

pub fn upstream(port: u16) -> Result<Running> {
    start(Command::new(std::env::current_exe()?).args(["upstream", &port.to_string()]))
}

pub fn nginx(directory: &Path, port: u16, upstream: u16) -> Result<Running> {
    let text = format!(
        "worker_processes 2;\ndaemon off;\npid {0}/pid;\nerror_log {0}/error;\nevents {{ worker_connections 4096; }}\n\
         http {{ access_log off; client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;\n\
         keepalive_requests 100000000; upstream up {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 100000000; }}\n\
         server {{ listen 127.0.0.1:{port}; client_max_body_size 16m; location / {{ proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering on; }} }} }}\n",
        directory.display()
    );
    let file = directory.join("nginx.conf");
    std::fs::write(&file, text)?;
    start(Command::new("nginx").arg("-c").arg(&file).arg("-p").arg(directory))
}

pub fn toolwarden(program: &Path, home: &Path, port: u16, upstream: u16) -> Result<Running> {
    let own = std::env::current_exe()?;
    let config = format!(
        "[servers.bench]\nurl = \"http://127.0.0.1:{upstream}/mcp\"\n[servers.pipe]\ncommand = \"{0}\"\nargs = [\"pipe\"]\n\
         [servers.modern]\nurl = \"http://127.0.0.1:{upstream}/modern\"\n\
         [servers.modern-pipe]\ncommand = \"{0}\"\nargs = [\"pipe\", \"modern\"]\n",
        own.display()
    );
    toolwarden_with(program, home, port, &config)
}

/// A gateway with a config of its own.
pub fn toolwarden_with(program: &Path, home: &Path, port: u16, text: &str) -> Result<Running> {
    use std::os::unix::fs::PermissionsExt;
    let config = home.join(".config/toolwarden");
    std::fs::create_dir_all(&config)?;
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o700))?;
    std::fs::write(config.join("toolwarden.toml"), text)?;
    let lists = home.join(".cursor");
    std::fs::create_dir_all(&lists)?;
    std::fs::write(
        lists.join("permissions.json"),
        r#"{"mcpAllowlist":["bench:*","pipe:*","modern:*","modern-pipe:*"]}"#,
    )?;
    let address = format!("127.0.0.1:{port}");
    let log = std::fs::File::create(home.join("log"))?;
    let child = Command::new(program)
        .args(["serve", "--listen", &address])
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .env("TOOLWARDEN_LOG", "warn")
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .context("cannot start toolwarden")?;
    Ok(Running(child))
}
