-- What was odd, repaired or lost in the input, losses first.
select rank, severity, code, count, sentence, advice, file, "offset" from issues
order by case severity when 'lost' then 0 when 'repaired' then 1 else 2 end, count desc
