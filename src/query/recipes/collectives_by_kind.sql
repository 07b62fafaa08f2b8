-- Communication on devices by kind of collective, group and element type.
select c.rank, c.collective, c.group_name, c.dtype, c.group_size, count(*) as calls, sum(c.dur_ns) as total_ns,
       sum(c.in_elements) as in_elements
from collectives c join device_work d on d.rank = c.rank and d.slice = c.slice
group by c.rank, c.collective, c.group_name, c.dtype, c.group_size order by total_ns desc
