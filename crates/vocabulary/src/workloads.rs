//! What a bundle says of the load.

use crate::word::words;

words! {
    /// What the connections ran.
    WorkloadName {
        /// sysbench's workload of this name.
        OltpReadWrite: "oltp_read_write",
        /// sysbench's workload of this name.
        OltpReadOnly: "oltp_read_only",
        /// sysbench's workload of this name.
        OltpWriteOnly: "oltp_write_only",
        /// sysbench's workload of this name.
        OltpPointSelect: "oltp_point_select",
        /// sysbench's workload of this name.
        OltpUpdateIndex: "oltp_update_index",
        /// sysbench's workload of this name.
        OltpUpdateNonIndex: "oltp_update_non_index",
        /// sysbench's workload of this name.
        OltpInsert: "oltp_insert",
        /// sysbench's workload of this name.
        OltpDelete: "oltp_delete",
        /// sysbench's workload of this name.
        SelectRandomPoints: "select_random_points",
        /// sysbench's workload of this name.
        SelectRandomRanges: "select_random_ranges",
        /// TPC-C.
        Tpcc: "tpcc",
        /// Statements of the user.
        Script: "script" ("statements of the user"),
        /// External load of a server that was only watched, or of recordings without a known load: figures are per second.
        Watch: "watch" ("external load"),
        /// A known load that another tool recorded.
        Imported: "imported" ("imported load"),
    }
}

words! {
    /// When a connection starts its next transaction.
    LoopWord {
        /// When the one before has ended.
        Closed: "closed",
        /// When it is due, at the offered rate.
        Open: "open",
    }
}

words! {
    /// A kind of transaction of TPC-C (clauses 2.4 to 2.8), in the order of the specification.
    TpccTransaction {
        /// New-Order (clause 2.4).
        NewOrder: "new_order",
        /// Payment (clause 2.5).
        Payment: "payment",
        /// Order-Status (clause 2.6).
        OrderStatus: "order_status",
        /// Delivery (clause 2.7).
        Delivery: "delivery",
        /// Stock-Level (clause 2.8).
        StockLevel: "stock_level",
        /// A New-Order that was rolled back as planned, for an item that does not exist (clause 2.4.1.4): complete, but not
        /// committed, with a latency of its own.
        NewOrderRolledBack: "new_order_rolled_back",
    }
}
