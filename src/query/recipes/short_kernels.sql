-- Kernels shorter than the call that launched them: work that a graph or a fusion would speed up.
select d.name, count(*) as calls, sum(d.dur_ns) as device_ns, sum(l.dur_ns) as launch_ns
from device_work d join slices l on l.rank = d.rank and l.slice = d.launch
where d.kind = 'kernel' and d.dur_ns < l.dur_ns group by d.name order by calls desc
