-- The highest allocated and reserved memory of each device, from allocator events.
select rank, device_type, device_index, max(total_allocated) as peak_allocated_bytes,
       max(total_reserved) as peak_reserved_bytes, count(*) as events
from memory_events group by rank, device_type, device_index order by rank
