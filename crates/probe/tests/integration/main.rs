//! The sources of figures on programs of which is known what they do.

mod counts_agree;
mod own_cgroup;
mod plain_mariadbd;
mod plain_stacks;
mod plain_watch;
mod stopped;
mod watch;
