//! Scratch driver.
use scaleprof_workload::*;
use scaleprof_wire::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
struct O{n:u64,lat:u64,q:u64}
impl LoadObserver for O{fn connected(&mut self,_:u32,_:u32){} fn begins(&mut self){} fn second_ended(&mut self,_:u32){} fn record(&mut self,r:SecondRecord){self.n+=r.transactions;self.q+=r.queries;self.lat+=r.service_sum_ns; if std::env::var("V").is_ok(){eprintln!("{} {} p99 {} lag99 {} err {:?}",r.second,r.transactions,r.service.value_at_quantile(0.99)/1000,r.lag.value_at_quantile(0.99)/1000, r.errors)}}}
fn cpu()->(f64,f64){let r=unsafe{let mut u:libc::rusage=std::mem::zeroed();libc::getrusage(0,&mut u);u};(r.ru_utime.tv_sec as f64+r.ru_utime.tv_usec as f64/1e6,r.ru_stime.tv_sec as f64+r.ru_stime.tv_usec as f64/1e6)}
fn main(){
 let a:Vec<String>=std::env::args().collect();
 let sock=&a[1]; let kind:OltpWorkloadKind=a[2].parse().unwrap(); let conns:u32=a[3].parse().unwrap(); let secs:u32=a[4].parse().unwrap(); let tr:Transport=a[5].parse().unwrap();
 let rows: u32 = std::env::var("ROWS").map(|r|r.parse().unwrap()).unwrap_or(50000);
 let options=OltpOptions{tables:4,table_size:rows,..Default::default()};
 let ep=Endpoint::Unix(sock.into()); let who=Credentials::user("root");
 let stop=Arc::new(AtomicBool::new(false));
 if kind.name()=="oltp_read_write" && secs==0 {
  let mut c=Client::connect(&ep,&who).unwrap(); println!("{}",c.server_version());
  schema::create(&mut c,Some(&options),"x").unwrap();
  let t=std::time::Instant::now();
  schema::fill(&schema::FillPlan{endpoint:ep,credentials:who,options:options.clone(),kind,seed:1,threads:4},&stop,&mut |_|{}).unwrap();
  println!("fill {:?} cpu {:?}",t.elapsed(),cpu()); return;
 }
 let program=Arc::new(Program::Oltp(OltpWorkload::new(kind,options).unwrap()));
 raise_open_file_limit(conns).unwrap();
 let plan=LoadPlan{endpoint:ep,credentials:who.in_database(schema::SCHEMA),program,connections:conns,idle_connections:0,seconds:secs,loop_kind:LoopKind::Closed,threads:1,cpus:vec![],seed:1,transport:tr,session_statements:vec![]};
 let mut o=O{n:0,lat:0,q:0};
 let out=drive(&plan,&stop,&mut o);
 let (u,s)=cpu();
 println!("{} {} conns {} tps {:.0} cpu/tx {:.2} (u {:.2} s {:.2}) XR/N {:.4} {:?}",kind,a[5],conns,o.n as f64/secs as f64,(u+s)*1e6/o.n as f64,u*1e6/o.n as f64,s*1e6/o.n as f64,o.lat as f64/1e9/secs as f64/conns as f64,out.map(|o|o.connect_seconds));
}
