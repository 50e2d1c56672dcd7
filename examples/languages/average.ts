const numbers: number[] = [2, 4, 6];
const mean: number = numbers.reduce((a, b) => a + b) / numbers.length;
console.log("mean:", mean);
