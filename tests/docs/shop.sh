# A table of orders with a row, an index, and the schema as a file.
cat > order.avsc <<'END'
{"type": "record", "name": "Order", "fields": [
  {"name": "customer", "type": "string"},
  {"name": "number", "type": "long"},
  {"name": "day", "type": {"type": "int", "logicalType": "date"}},
  {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}}
]}
END
cortado db create shop
cortado schema register shop.orders order.avsc
cortado table create shop.orders --key customer --key number --index by_day=day
cortado put shop.orders '{"customer": "ada", "number": 1, "day": "2026-03-01", "total": "12.50"}'
