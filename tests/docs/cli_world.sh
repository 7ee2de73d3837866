# What the examples of docs/cli/ speak of.
cat > airlines.avsc <<'END'
{"type": "record", "name": "Airline", "fields": [
  {"name": "carrier", "type": "string"},
  {"name": "name", "type": "string"}
]}
END
cat > airlines-2.avsc <<'END'
{"type": "record", "name": "Airline", "fields": [
  {"name": "carrier", "type": "string"},
  {"name": "name", "type": "string"},
  {"name": "alliance", "type": ["null", "string"], "default": null}
]}
END
cat > flights.avsc <<'END'
{"type": "record", "name": "Flight", "fields": [
  {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-micros"}},
  {"name": "carrier", "type": "string"},
  {"name": "flight", "type": "int"},
  {"name": "tailnum", "type": ["null", "string"], "default": null},
  {"name": "origin", "type": "string"},
  {"name": "dest", "type": "string"},
  {"name": "arr_delay", "type": ["null", "double"], "default": null},
  {"name": "seats", "type": "int", "default": 0}
]}
END
cat > shop.avsc <<'END'
{"type": "record", "name": "Order", "fields": [
  {"name": "customer", "type": "string"},
  {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-micros"}},
  {"name": "number", "type": "long"}
]}
END
echo '{"type": "record", "name": "Gate", "fields": [{"name": "id", "type": "string"}]}' > gates.avsc
echo '{"carrier": "UA", "name": "United Air Lines Inc."}' > airlines.jsonl
printf 'carrier,name\nUA,United Air Lines Inc.\n' > airlines.csv
cat > operations.jsonl <<'END'
{"put": {"namespace": "log", "key": "7", "value": "tea", "if_absent": true}}
{"add": {"namespace": "counters", "key": "sold", "delta": 1, "min": 0}}
{"require": {"namespace": "log", "key": "8", "if_absent": true}}
END
cat > commands.txt <<'END'
# One command a line.
kv put sessions user:2 'signed in'
kv get sessions user:2
END
cortado db create flights
cortado db create shop
cortado schema register flights.airlines airlines.avsc
cortado schema register flights.flights flights.avsc
cortado schema register shop.orders shop.avsc
cortado table create flights.airlines --key carrier
cortado table create flights.airlines_copy --key carrier --subject flights.airlines
cortado table create flights.airlines_new --key carrier --subject flights.airlines
cortado table create flights.flights --key time_hour --key carrier --key flight --index by_tailnum=tailnum
cortado put flights.airlines --file airlines.jsonl
cortado put flights.flights <<'END'
{"time_hour": "2013-01-01T10:00:00Z", "carrier": "UA", "flight": 1545, "tailnum": "N14228", "origin": "EWR", "dest": "IAH"}
{"time_hour": "2013-06-01T10:00:00Z", "carrier": "AA", "flight": 1141, "origin": "JFK", "dest": "MIA", "arr_delay": 61.0}
END
cortado kv put sessions user:1 'signed in'
cortado kv put counters visits 41
cortado cert ca
cortado cert node n1 --host 127.0.0.1
echo 'heartbeat-ms = 100' > etc-cortado.toml
cortado context set prod --endpoint db1:7621
cortado context use prod
echo '"int"' | cortado schema register topic-value -
echo '"long"' | cortado schema register topic-value -
