const numbers = [2, 4, 6];
console.log("mean:", numbers.reduce((a, b) => a + b) / numbers.length);
