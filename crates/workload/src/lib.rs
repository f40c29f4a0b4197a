//! The load on the server: sysbench's OLTP workloads and SQL scripts, and the client that drives them
