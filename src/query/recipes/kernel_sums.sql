-- Kernels by name: how many, their time, and the shortest and longest.
select name, count(*) as calls, sum(dur_ns) as total_ns, avg(dur_ns) as avg_ns, min(dur_ns) as min_ns,
       max(dur_ns) as max_ns
from kernels group by name order by total_ns desc
