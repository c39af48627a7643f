-- An order and the action about it in one transaction: either both happen or
-- neither. Run it as a login that `countersign db-login bind` lets propose:
--   psql "$SHOP_URL" -f examples/orders-sql/order.sql
BEGIN;
INSERT INTO orders (order_no, customer) VALUES ('4711', 'ana@example.org');
SELECT countersign.propose(jsonb_build_object(
    'type', 'mcp.exec',
    'external_id', 'order 4711',
    'tool', jsonb_build_object('source', 'notes', 'name', 'notes.create'),
    'args', jsonb_build_object('title', 'Order 4711', 'body', 'of ana@example.org')
)) AS proposal_id;
COMMIT;
