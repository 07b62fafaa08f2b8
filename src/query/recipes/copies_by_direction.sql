-- Memory copies and fills by direction: how many, bytes, time and mean bandwidth.
select name, count(*) as calls, sum(bytes) as total_bytes, sum(dur_ns) as total_ns,
       case when sum(dur_ns) > 0 then sum(bytes) * 1.0 / sum(dur_ns) end as bandwidth_gb_per_s
from device_work where kind in ('memcpy', 'memset') group by name order by total_ns desc
