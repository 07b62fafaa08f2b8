-- Operators by name: calls and whole time on the host (their children included).
select name, count(*) as calls, sum(dur_ns) as total_ns, avg(dur_ns) as avg_ns
from slices where kind = 'cpu_op' group by name order by total_ns desc
