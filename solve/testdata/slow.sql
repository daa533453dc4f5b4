SELECT name FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE orders.customer_id = customer.id AND total > 900) OR city = 'Nowhere'
SELECT name FROM customer c WHERE EXISTS (SELECT * FROM orders o WHERE c.id = o.customer_id AND o.status = 'open') OR c.since < '2019-01-02'
SELECT count(*) FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)
SELECT name FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.total > 950) AND c.city <> 'Bonn'
SELECT p.name FROM product p WHERE EXISTS (SELECT 1 FROM item i WHERE i.product_id = p.id AND i.quantity > 8) OR p.category = 'toys'
SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM item i JOIN product p ON i.product_id = p.id WHERE i.order_id = o.id AND p.category = 'books')
SELECT o.id, o.total FROM orders o WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.order_id = o.id)
SELECT count(*) FROM orders o WHERE o.total < 5 OR EXISTS (SELECT 1 FROM customer c WHERE c.id = o.customer_id AND c.city = 'Oslo' ORDER BY c.name)
SELECT id FROM orders o WHERE total IN (SELECT price FROM item WHERE item.order_id = o.id)
SELECT name FROM customer c WHERE c.since IN (SELECT day FROM orders o WHERE o.customer_id = c.id)
SELECT o.id FROM orders o WHERE o.total IN (SELECT DISTINCT i.price FROM item i WHERE i.order_id = o.id AND i.quantity > 1 ORDER BY i.price)
SELECT c.name, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) AS n FROM customer c
SELECT c.name, (SELECT sum(o.total) FROM orders o WHERE o.customer_id = c.id) FROM customer c WHERE c.city = 'Rome' OR c.city = 'Oslo' OR c.city = 'Bonn'
SELECT c.name, (SELECT max(o.day) FROM orders o WHERE o.customer_id = c.id AND o.status = 'open') FROM customer c ORDER BY (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) DESC, c.name
SELECT o.id FROM orders o WHERE o.total > (SELECT avg(p.total) FROM orders p WHERE p.customer_id = o.customer_id)
SELECT o.id, o.total FROM orders o WHERE o.total = (SELECT max(p.total) FROM orders p WHERE p.customer_id = o.customer_id)
SELECT o.id FROM orders o WHERE o.day = (SELECT min(p.day) FROM orders p WHERE p.customer_id = o.customer_id AND p.status = o.status)
SELECT count(*) FROM orders o WHERE (SELECT count(*) FROM item i WHERE i.order_id = o.id) > 3
SELECT avg(o.total) FROM orders o WHERE (SELECT sum(i.quantity) FROM item i WHERE i.order_id = o.id) >= 10
SELECT p.name, (SELECT total(i.quantity) FROM item i WHERE i.product_id = p.id) FROM product p WHERE p.category = 'toys'
SELECT c.city, count(*) FROM customer c WHERE (SELECT count(*) FROM orders o WHERE o.customer_id = c.id AND o.total > 500) = 0 GROUP BY c.city
SELECT c.name FROM customer c WHERE (SELECT max(o.total) FROM orders o WHERE o.customer_id = c.id) < 300 AND EXISTS (SELECT 1 FROM orders q WHERE q.customer_id = c.id AND q.status = 'open')
SELECT c.name FROM customer c WHERE c.id IN (SELECT o.customer_id FROM orders o WHERE o.customer_id = c.id AND o.total > 800)
SELECT count(*) FROM product p CROSS JOIN customer c CROSS JOIN orders o CROSS JOIN item i WHERE i.product_id = p.id AND i.order_id = o.id AND o.customer_id = c.id AND p.category = 'toys'
SELECT DISTINCT c.name FROM customer c CROSS JOIN item i CROSS JOIN orders o WHERE o.customer_id = c.id AND i.order_id = o.id AND i.quantity = 9
SELECT count(*) FROM customer, orders WHERE customer.city = 'Rome' AND orders.total > 10
SELECT c.city, count(*) FROM customer c, orders o WHERE o.status = 'open' GROUP BY c.city
SELECT count(DISTINCT p.name) FROM orders o, item i, product p WHERE o.id = i.order_id AND p.category = 'books'
SELECT c.name FROM customer c WHERE (SELECT count(*) FROM orders o WHERE o.customer_id = c.id OR o.total = c.id) > 5
SELECT a.id FROM orders a WHERE NOT EXISTS (SELECT 1 FROM orders b WHERE b.total > a.total AND b.customer_id = a.customer_id)
