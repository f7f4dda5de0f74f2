// DeviationsFor: the threshold phi turned once into a number of deviations, so that every later decision is integer.

package fd

// Phi of a silence of y deviations beyond mean plus pause is -log10(e/(1+e)) with e = exp(-y(1.5976 + 0.070566 y^2)),
// the logistic approximation of the normal distribution's tail. It reaches T where
//
//	y(1.5976 + 0.070566 y^2) = ln(10^T - 1) = T ln 10 + ln(1 - 10^-T)
//
// The left side grows with y, so bisection finds it. Products are rounded one by one (the conversions forbid fused
// multiply-add), the power and the logarithm are short series, and the result is rounded to thousandths: every
// platform gets the same integer.
const (
	ln10       = 2.302585092994045684
	linearTerm = 1.5976
	cubicTerm  = 0.070566
)

// DeviationsFor returns y in thousandths for a threshold from 1 to 16 (clamped): 5226 for 8, 6292 for 12.
func DeviationsFor(threshold float64) int64 {
	threshold = min(max(threshold, 1), 16)
	want := float64(threshold*ln10) + lnOneMinus(tenToMinus(threshold))
	low, high := int64(0), int64(100_000)
	for low < high { // the least y with a phi that reaches the threshold, then rounded to the nearer neighbour
		mid := (low + high) / 2
		if exponent(float64(mid)/1000) < want {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low > 0 && want-exponent(float64(low-1)/1000) < exponent(float64(low)/1000)-want {
		low--
	}
	return low
}

// exponent is y(1.5976 + 0.070566 y^2).
func exponent(y float64) float64 {
	return float64(y * (linearTerm + float64(cubicTerm*float64(y*y))))
}

// tenToMinus returns 10^-t: whole tens by division, the rest by the series of exp, halved 8 times to make it short.
func tenToMinus(t float64) float64 {
	whole := int(t)
	x := float64(float64(t-float64(whole))*ln10) / 256
	sum, term := 1.0, 1.0
	for k := 1; k <= 12; k++ {
		term = float64(term*-x) / float64(k)
		sum += term
	}
	for range 8 {
		sum = float64(sum * sum)
	}
	for range whole {
		sum /= 10
	}
	return sum
}

// lnOneMinus returns ln(1 - x) for x up to 0.1, by its series.
func lnOneMinus(x float64) float64 {
	sum, power := 0.0, 1.0
	for k := 1; k <= 20; k++ {
		power = float64(power * x)
		sum -= power / float64(k)
	}
	return sum
}
