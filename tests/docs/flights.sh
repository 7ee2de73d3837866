# A table of flights and another for copies, with a few rows.
cat > flight.avsc <<'END'
{"type": "record", "name": "Flight", "fields": [
  {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-micros"}},
  {"name": "carrier", "type": "string"},
  {"name": "flight", "type": "int"}
]}
END
cortado db create nyc
cortado schema register nyc.flights flight.avsc
cortado table create nyc.flights --key time_hour --key carrier --key flight
cortado table create nyc.flights_copy --key time_hour --key carrier --key flight --subject nyc.flights
cortado put nyc.flights '{"time_hour": "2013-01-01T10:00:00Z", "carrier": "UA", "flight": 1545}'
cortado put nyc.flights '{"time_hour": "2013-02-01T10:00:00Z", "carrier": "AA", "flight": 1141}'
