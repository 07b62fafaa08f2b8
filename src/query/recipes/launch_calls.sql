-- Calls of the device's runtime or driver by name: how many, and the host time they took.
select name, count(*) as calls, sum(dur_ns) as total_ns, avg(dur_ns) as avg_ns, max(dur_ns) as max_ns
from launches group by name order by total_ns desc
