//! Small programs that tests start and talk to.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process that is killed when this is dropped.
pub struct Killed(pub Child);

impl Killed {
    /// Starts it, with the dispositions of signals that programs begin with.
    ///
    /// # Panics
    /// It does not start.
    #[track_caller]
    pub fn start(command: &mut Command) -> Killed {
        crate::default_signals(command);
        Killed(command.spawn().expect("the program starts"))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that answers each line of its input with a line of output. It is killed when dropped.
pub struct RunningProgram {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl RunningProgram {
    /// Starts it and waits for its first line, which must be `ready`.
    ///
    /// # Panics
    /// It does not start, or its first line is another.
    #[track_caller]
    pub fn start(command: &mut Command) -> RunningProgram {
        crate::default_signals(command);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut program = RunningProgram {
            input: child.stdin.take().expect("piped"),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        };
        assert_eq!(program.line(), "ready", "{command:?}");
        program
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a line and returns its answer.
    ///
    /// # Panics
    /// It does not listen.
    pub fn ask(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").expect("it listens");
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        line.trim_end().to_owned()
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
